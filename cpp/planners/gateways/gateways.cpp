#include "planners/gateways/gateways.h"

#include <algorithm>

#include "planners/gateways/choice.h"
#include "planners/tree_tasks.h"

namespace weft {
namespace {

constexpr int most_passes = 6, few_passes = 1;  // few among many NPUs
constexpr double busy = 0.95;  // of the busiest link: what crosses a busier one is chosen again
// High: where gateways differ without need, messages fall out of step and wait for each other.
constexpr double depth_price = 3;
// How far apart the first and the last chunk are in priority, over the load of the busiest link.
constexpr double eagerness = 0.003;

std::vector<std::int32_t> hops_of(const Tree& tree) {
    auto all = tree.up;
    all.insert(all.end(), tree.down.begin(), tree.down.end());
    return all;
}
std::vector<std::int32_t> hops_of(const Shot& shot) {
    auto all = shot.across;
    for (const auto& box : shot.boxes)
        for (const auto* tree : {&box.to_sender, &box.to_receiver, &box.spread})
            all.insert(all.end(), tree->begin(), tree->end());
    return all;
}

// A choice for each chunk; then another for those that cross the busiest links.
template <class Choice, class Choose>
std::vector<Choice> choose_all(GatewayChooser& chooser, std::int32_t count, double goal,
                               Choose choose) {
    std::vector<Choice> found(count);
    for (std::int32_t i = 0; i < count; ++i) {
        chooser.set_full(std::max(goal * (i + 1) / count, chooser.busiest()));
        found[i] = choose(i);
        const auto hops = hops_of(found[i]);
        if (hops.empty()) return {};
        chooser.put(hops, +1);
    }
    auto best = found;
    double least = chooser.busiest();
    const int passes = chooser.is_large() ? few_passes : most_passes;
    for (int pass = 0; pass < passes && least > goal; ++pass) {
        const double most = chooser.busiest();
        chooser.set_full(std::max(goal, busy * most));
        for (std::int32_t i = 0; i < count; ++i) {
            const auto hops = hops_of(found[i]);
            if (chooser.busiest(hops) < busy * most) continue;
            chooser.put(hops, -1);
            found[i] = choose(i);
            chooser.put(hops_of(found[i]), +1);
        }
        if (chooser.busiest() < least) least = chooser.busiest(), best = found;
    }
    return best;
}

// Tasks, and the turn of each: in [0, 1) from the first chunk to the last.
class Work {
  public:
    Work(const Hops& hops, const Boxes& boxes, const Sizes& sizes)
        : hops_(hops), boxes_(boxes), sizes_(sizes), tree_tasks_(hops),
          into_(3, std::vector<std::int32_t>(hops.out.size(), -1)) {}

    Tasks tasks;
    std::vector<double> turn;

    void add(const std::vector<Tree>& trees) {
        const auto owner = [&](const Tree& tree) {
            return tree.up.empty() ? hops_.src[tree.down.front()] : hops_.dst[tree.up.front()];
        };
        std::vector<std::int32_t> owned(hops_.out.size(), 0), nth(hops_.out.size(), 0);
        for (const auto& tree : trees) ++owned[owner(tree)];
        for (std::int32_t chunk = 0; chunk < static_cast<std::int32_t>(trees.size()); ++chunk) {
            const auto& tree = trees[chunk];
            const auto root = owner(tree);
            tree_tasks_.add(tasks, tree.up, tree.down, chunk, sizes_.of_chunk[chunk]);
            give_turns(nth[root]++, owned[root], boxes_[root]);
        }
    }

    void add(const std::vector<Shot>& shots) {
        const auto count = static_cast<std::int32_t>(shots.size());
        for (std::int32_t chunk = 0; chunk < count; ++chunk) {
            add(shots[chunk], chunk);
            give_turns(chunk, count, chunk % boxes_.count());
        }
    }

  private:
    enum Place { home, for_others, for_own };

    std::uint8_t kind(bool reduce, Place reads, Place writes) const {
        return static_cast<std::uint8_t>(reduce | reads << 1 | writes << 3);
    }

    // Boxes take turns: those next to the owner's come first, its own comes last. So do NPUs.
    void give_turns(std::int32_t round, std::int32_t rounds, std::int32_t home_box) {
        const auto behind = [](std::int32_t distance, std::int32_t count) {
            return static_cast<double>((distance % count + 2 * count - 1) % count) / count;
        };
        for (auto task = static_cast<std::int32_t>(turn.size()); task < tasks.size(); ++task) {
            const auto from = hops_.src[tasks[task].hop], to = hops_.dst[tasks[task].hop];
            const bool sums = tasks[task].reduce & 1;
            const auto box = boxes_[sums ? from : to], boxes = boxes_.count();
            const auto mates = static_cast<std::int32_t>(boxes_.members[box].size());
            const double away = behind(sums ? home_box - box : box - home_box, boxes) +
                                behind(boxes_.place(to) - boxes_.place(from), mates) / boxes;
            turn.push_back((round + away) / rounds);
        }
    }

    void add(const Shot& shot, std::int32_t chunk) {
        const auto size = sizes_.of_chunk[chunk];
        std::vector<std::vector<std::int32_t>> sums(boxes_.count()), all(boxes_.count());
        for (std::int32_t box = 0; box < boxes_.count(); ++box) {
            sums[box] = add_sums(shot.boxes[box].to_sender, for_others, chunk);
            all[box] = add_sums(shot.boxes[box].to_receiver, for_own, chunk);
        }
        for (auto hop : shot.across) {
            const auto from = boxes_[hops_.src[hop]], to = boxes_[hops_.dst[hop]];
            const auto task = tasks.add(hop, chunk, kind(true, for_others, for_own), size);
            for (auto before : sums[from]) tasks.order(before, task);
            all[to].push_back(task);
        }
        for (std::int32_t box = 0; box < boxes_.count(); ++box) {
            const auto& [sender, receiver, to_sender, to_receiver, spread] = shot.boxes[box];
            for (auto npu : boxes_.members[box]) into_[home][npu] = -1;
            for (auto hop : spread) {
                const auto from = hops_.src[hop], to = hops_.dst[hop];
                const auto place = from == receiver ? for_own : home;
                const auto task = tasks.add(hop, chunk, kind(false, place, home), size);
                if (from != receiver) tasks.order(into_[home][from], task);
                for (auto before : all[box])
                    if (from == receiver) tasks.order(before, task);
                // What it has of its own must have left before it is written over.
                if (to != sender) tasks.order(into_[for_others][to], task);
                into_[home][to] = task;
            }
        }
    }

    // Sums of a box, from the leaves to the gateway; returns those that end there.
    std::vector<std::int32_t> add_sums(const std::vector<std::int32_t>& tree, Place place,
                                       std::int32_t chunk) {
        auto& away = into_[place];  // by NPU: what brings its sum away
        std::vector<bool> inner(away.size(), false);
        for (auto hop : tree) inner[hops_.dst[hop]] = true;
        for (auto hop : tree) away[hops_.dst[hop]] = -1;
        for (auto hop = tree.rbegin(); hop != tree.rend(); ++hop) {
            const auto from = hops_.src[*hop];
            away[from] = tasks.add(*hop, chunk, kind(true, inner[from] ? place : home, place),
                                   sizes_.of_chunk[chunk]);
        }
        std::vector<std::int32_t> last;
        for (auto hop : tree) {
            const auto task = away[hops_.src[hop]], above = away[hops_.dst[hop]];
            if (above < 0)
                last.push_back(task);
            else
                tasks.order(task, above);
        }
        return last;
    }

    const Hops& hops_;
    const Boxes& boxes_;
    const Sizes& sizes_;
    TreeTasks tree_tasks_;
    // By place and NPU: the task that brings a sum away, or at home the result there.
    std::vector<std::vector<std::int32_t>> into_;
};

}  // namespace

Schedule plan_gateways(const Hops& hops, std::span<const HopTimes> times, const Chunks& chunks,
                       const Sizes& sizes, std::span<const std::int32_t> box, bool one_shot,
                       const Search& search) {
    if (hops.count() == 0 || chunks.size() == 0) return {};
    const Boxes boxes(hops, box);
    GatewayChooser chooser(hops, times[0], boxes, depth_price);
    const auto goal = static_cast<double>(search.goal);
    Work work(hops, boxes, sizes);
    if (one_shot)
        work.add(choose_all<Shot>(chooser, chunks.size(), goal,
                                  [&](auto) { return chooser.choose_shot(); }));
    else
        work.add(choose_all<Tree>(chooser, chunks.size(), goal, [&](auto chunk) {
            return chunks.reduce[chunk] ? chooser.choose()
                                        : chooser.choose(chunks.holders(chunk).front());
        }));
    if (work.tasks.size() == 0) return {};
    search.progress.begin(work.tasks.size());
    auto priority = work.tasks.tails(times);
    const double apart = eagerness * chooser.busiest();
    for (std::size_t task = 0; task < priority.size(); ++task)
        priority[task] -= static_cast<ps>(apart * work.turn[task]);
    Schedule schedule = list_schedule(hops, times, work.tasks, priority, search.progress);
    if (search.progress.cancelled) throw Cancelled();
    return schedule;
}

}  // namespace weft
