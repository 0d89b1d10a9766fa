// What decided how long a run took, found backwards from its end.
#include <algorithm>
#include <span>
#include <tuple>

#include "base/route_times.h"
#include "engine/simulate.h"

namespace weft {
namespace {

class Backwards {
  public:
    Backwards(const Run& run, const Simulated& done)
        : run_(run), done_(done), times_(run.network, run.routes, run.cost) {
        for (std::int32_t row = 0; row < run.waits.rows; ++row) {
            const auto links = run.routes[run.rows.route[row]];
            const auto& holds = times(row).holds;
            for (std::size_t k = 0; k < links.size(); ++k)
                released_.push_back(
                    {links[k], done.start[row] + holds[k].offset + holds[k].length, row});
            if (run.reducer > 0 && run.rows.reduce[row])
                added_.push_back({run.rows.dst[row], done.end[row], row});
            if (links.empty()) continue;
            if (!run.network.copies.empty()) sent_.push_back({links.front(), done.start[row], row});
            if (!run.network.adds.empty() && run.rows.reduce[row])
                met_.push_back({links.back(), done.start[row] + times(row).duration, row});
        }
        find_last_of_joins();
        std::sort(released_.begin(), released_.end());
        std::sort(added_.begin(), added_.end());
        std::sort(sent_.begin(), sent_.end());
        std::sort(met_.begin(), met_.end());
    }

    std::vector<CriticalStep> find() {
        std::vector<CriticalStep> path;
        if (done_.end.empty()) return path;
        const auto last = std::max_element(done_.end.begin(), done_.end.end());
        auto row = static_cast<std::int32_t>(last - done_.end.begin());
        const auto most = done_.end.size();
        bool by_end = true;  // the one after it waited for its end, not for a link that it left
        while (path.size() < most) {  // rows without duration could go in circles
            const auto [before, cause, link] = reason(row, by_end);
            path.push_back({row, cause, link});
            if (cause == Cause::start) break;
            row = before;
            by_end = cause != Cause::link;
        }
        std::reverse(path.begin(), path.end());
        return path;
    }

  private:
    struct Reason {
        std::int32_t before = -1;
        Cause cause = Cause::start;
        std::int32_t link = -1;
    };
    // Something that a row did at a time, to a link or on an NPU.
    struct Event {
        std::int32_t where;
        ps time;
        std::int32_t row;
        auto operator<=>(const Event&) const = default;
    };

    const RouteTimes& times(std::int32_t row) {
        return times_.of(run_.bytes[run_.rows.chunk[row]], run_.rows.route[row]);
    }

    Reason reason(std::int32_t row, bool by_end) {
        if (by_end)
            if (const auto before = added_before(row); before >= 0) return {before, Cause::adding};
        if (const Reason own = reason_to_start(row); own.before >= 0) return own;
        // The rows of a multicast start together, and the parts of a sum that a switch adds arrive
        // together: what held up one held up all.
        const auto links = run_.routes[run_.rows.route[row]];
        const ps arrived = done_.start[row] + times(row).duration;
        if (!links.empty())
            for (const auto others : {all_at(sent_, links.front(), done_.start[row]),
                                      all_at(met_, links.back(), arrived)})
                for (const Event& other : others)
                    if (const Reason theirs = reason_to_start(other.row); theirs.before >= 0)
                        return theirs;
        // Only what it writes had to wait.
        if (const auto before = brought(row, arrived); before >= 0) return {before, Cause::data};
        return {};
    }

    // The row that ended, or left a link, just when this one started.
    Reason reason_to_start(std::int32_t row) {
        if (const auto before = brought(row, done_.start[row]); before >= 0)
            return {before, Cause::data};
        const auto links = run_.routes[run_.rows.route[row]];
        for (std::size_t k = 0; k < links.size(); ++k) {
            const ps begin = done_.start[row] + times(row).holds[k].offset;
            const auto found = all_at(released_, links[k], begin);
            if (!found.empty() && found.front().row != row)
                return {found.front().row, Cause::link, links[k]};
        }
        return {};
    }

    // The row that was added on the same NPU just before this one could be, if it had to wait.
    std::int32_t added_before(std::int32_t row) {
        if (run_.reducer == 0 || !run_.rows.reduce[row]) return -1;
        const ps began = done_.end[row] - run_.adding(row);
        if (began <= done_.start[row] + times(row).duration) return -1;
        const auto found = all_at(added_, run_.rows.dst[row], began);
        return found.empty() ? -1 : found.front().row;
    }

    // A row that this one waits for, itself or through a join, and that ends at `time`.
    std::int32_t brought(std::int32_t row, ps time) const {
        for (auto node : run_.waits.waits[row])
            if (const auto last = last_of(node); done_.end[last] == time) return last;
        return -1;
    }

    // Joins stand for rows and for joins before them.
    void find_last_of_joins() {
        const auto earlier = [&](std::int32_t a, std::int32_t b) {
            return done_.end[last_of(a)] < done_.end[last_of(b)];
        };
        for (auto join = run_.waits.rows; join < run_.waits.size(); ++join) {
            const auto nodes = run_.waits.waits[join];
            last_of_join_.push_back(
                last_of(*std::max_element(nodes.begin(), nodes.end(), earlier)));
        }
    }

    // The row that ended last of those that a node stands for.
    std::int32_t last_of(std::int32_t node) const {
        return node < run_.waits.rows ? node : last_of_join_[node - run_.waits.rows];
    }

    static std::span<const Event> all_at(const std::vector<Event>& events, std::int32_t where,
                                         ps time) {
        const auto first = std::lower_bound(events.begin(), events.end(), Event{where, time, -1});
        auto last = first;
        while (last != events.end() && last->where == where && last->time == time) ++last;
        return {first, last};
    }

    const Run& run_;
    const Simulated& done_;
    TimesBySize times_;
    std::vector<std::int32_t> last_of_join_;
    std::vector<Event> released_;  // when links were left
    std::vector<Event> added_;     // when NPUs had added, if that takes time
    std::vector<Event> sent_;      // when rows started on their first link, where switches copy
    std::vector<Event> met_;       // when sums arrived over their last link, where switches add
};

}  // namespace

std::vector<CriticalStep> critical_path(const Run& run, const Simulated& done) {
    return Backwards(run, done).find();
}

}  // namespace weft
