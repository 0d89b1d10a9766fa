#include "matching.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "choice.h"
#include "chunk_sets.h"
#include "events.h"
#include "ports.h"
#include "random.h"

namespace weft {
namespace {

template <class Ports>
class Matcher {
  public:
    Matcher(const Hops& hops, const HopTimes& times, const Spread& spread,
            const MatchOptions& options, Progress& progress)
        : hops_(hops), times_(times), spread_(spread), options_(options),
          progress_(progress), target_(options.target),
          npus_(hops.out.size()), one_speed_(is_one_speed(times)), random_(options.seed), ports_(hops, times),
          have_(npus_, spread.chunks()), claimed_(npus_, spread.chunks()),
          copies_(spread.chunks(), 0), unclaimed_(npus_, spread.chunks()),
          state_(hops.count(), State::ready), events_(all_delays()) {
        place_holders();
        count_wanted();
        progress_.total += wanted_;
        prepare_lanes();
        if (options_.rotate) prepare_rotation();
        if (options_.regions) prepare_regions();
    }

    Schedule run() {
        ready_ = hops_.in.items;  // hops into one NPU side by side look at the same sets
        while (wanted_ > 0) {
            match_ready_hops();
            if (events_.empty() && !relax_target()) break;
            if (events_.empty()) continue;
            now_ = events_.next_time();
            if (now_ > options_.limit || progress_.cancelled) return {};
            const auto before = wanted_;
            events_.pop_all(now_, [&](const Event& event) {
                event.detail == release ? on_release(event.subject) : on_arrival(event);
            });
            progress_.done += before - wanted_;
        }
        if (wanted_ > 0) return {};
        schedule_.time = now_;
        schedule_.routes = ports_.take_routes();
        prune();
        return std::move(schedule_);
    }

  private:
    enum class State : std::uint8_t {
        ready,     // in ready_, to be looked at
        idle,      // its source has nothing for its destination: wakes when a chunk arrives there
        blocked,   // a link on its way is busy: wakes when a bundle is released
        deferred,  // would end after the target: wakes when the target is relaxed
    };

    // ---- setting up ----

    std::vector<ps> all_delays() const {
        std::vector<ps> delays(times_.duration);
        const auto early = earliest_offsets();
        for (std::size_t i = 0; i < times_.holds.size(); ++i)
            delays.push_back(release_delay(i, early));
        return delays;
    }

    // How soon after its start any hop needs the bundle: by so much earlier than the link itself
    // is free may the next hop start.
    std::vector<ps> earliest_offsets() const {
        std::vector<ps> early(hops_.bundles.size(), never);
        for (std::size_t i = 0; i < times_.holds.size(); ++i) {
            auto& least = early[hops_.steps.items[i]];
            least = std::min(least, times_.holds[i].offset);
        }
        return early;
    }
    ps release_delay(std::size_t step, const std::vector<ps>& early) const {
        const Hold hold = times_.holds[step];
        return hold.offset + hold.length - early[hops_.steps.items[step]];
    }

    void place_holders() {
        for (std::int32_t chunk = 0; chunk < spread_.chunks(); ++chunk)
            for (auto npu : spread_.holders[chunk]) {
                have_.add(npu, chunk);
                claimed_.add(npu, chunk);
                ++copies_[chunk];
                --unclaimed_[npu];
            }
    }

    void count_wanted() {
        taker_sets_ = ChunkSets(spread_.sets.size(), npus_);
        for (std::int32_t set = 0; set < spread_.sets.size(); ++set)
            for (auto npu : spread_.sets[set]) taker_sets_.add(set, npu);
        for (std::int32_t chunk = 0; chunk < spread_.chunks(); ++chunk)
            for (auto npu : spread_.sets[spread_.takers[chunk]]) wanted_ += !have_.has(npu, chunk);
    }

    void prepare_lanes() {
        const auto early = earliest_offsets();
        for (auto delay : times_.duration) arrival_lane_.push_back(events_.lane(delay));
        for (std::size_t i = 0; i < times_.holds.size(); ++i)
            release_lane_.push_back(events_.lane(release_delay(i, early)));
        if (!hops_.single_links) hops_using_ = group_steps_by_bundle();
        std::vector<std::int32_t> last(hops_.count());
        for (std::int32_t h = 0; h < hops_.count(); ++h) last[h] = hops_.steps[h].back();
        fastest_into_.assign(hops_.bundles.size(), -1);
        for (std::int32_t h = 0; h < hops_.count(); ++h) {
            auto& best = fastest_into_[last[h]];
            if (best < 0 || times_.duration[h] < times_.duration[best]) best = h;
        }
        for (std::int32_t npu = 0; npu < npus_; ++npu) {
            for (auto h : hops_.in[npu])
                if (fastest_into_[last[h]] == h) ingress_.items.push_back(h);
            ingress_.close();
        }
    }

    Rows group_steps_by_bundle() const {
        std::vector<std::int32_t> hop_of_step;
        for (std::int32_t h = 0; h < hops_.count(); ++h)
            hop_of_step.insert(hop_of_step.end(), hops_.steps[h].size(), h);
        Rows by_bundle = group_by(hops_.steps.items, hops_.bundles.size());
        for (auto& item : by_bundle.items) item = hop_of_step[item];
        return by_bundle;
    }

    // Destinations of a port in order of (dst - src): with every source one further each time,
    // a switch sees a permutation after the other.
    void prepare_rotation() {
        std::vector<std::int32_t> first(hops_.count());
        for (std::int32_t h = 0; h < hops_.count(); ++h) first[h] = hops_.steps[h][0];
        Rows by_port = group_by(first, hops_.bundles.size());
        turn_.resize(hops_.count());
        port_size_.resize(hops_.bundles.size());
        sent_.assign(hops_.bundles.size(), 0);
        for (std::int32_t port = 0; port < by_port.size(); ++port) {
            std::vector<std::int32_t> list(by_port[port].begin(), by_port[port].end());
            auto shift = [&](std::int32_t h) {
                return (hops_.dst[h] - hops_.src[h] + npus_) % npus_;
            };
            std::stable_sort(list.begin(), list.end(),
                             [&](auto a, auto b) { return shift(a) < shift(b); });
            for (std::size_t i = 0; i < list.size(); ++i)
                turn_[list[i]] = static_cast<std::uint32_t>(i);
            port_size_[port] = static_cast<std::uint32_t>(list.size());
        }
    }

    void prepare_regions() {
        const auto& regions = *options_.regions;
        const auto count = 1 + *std::max_element(regions.begin(), regions.end());
        claimed_in_ = ChunkSets(count, spread_.chunks());
        for (std::int32_t chunk = 0; chunk < spread_.chunks(); ++chunk)
            for (auto npu : spread_.holders[chunk]) claimed_in_.add(regions[npu], chunk);
    }

    // ---- the loop ----

    void match_ready_hops() {
        if (!one_speed_) random_.shuffle(ready_);
        if (options_.rotate) sort_by_turn();
        for (auto hop : ready_) consider(hop);
        ready_.clear();
    }

    // Most ready hops have just been woken in vain: another took the link they share. They are
    // dropped first, and the turn of each of the others is worked out once.
    void sort_by_turn() {
        by_turn_.clear();
        for (auto hop : ready_) {
            if (is_hopeless(hop)) continue;
            const auto port = hops_.steps[hop][0];
            const auto size = port_size_[port];
            const auto turn = (turn_[hop] + size - sent_[port] % size) % size;
            by_turn_.push_back({turn, by_turn_.size(), hop});
        }
        std::sort(by_turn_.begin(), by_turn_.end());
        ready_.clear();
        for (const auto& [turn, place, hop] : by_turn_) ready_.push_back(hop);
    }

    // Whether nothing can be sent over the hop now, whatever chunk; notes what would change that.
    bool is_hopeless(std::int32_t hop) {
        state_[hop] = State::idle;
        if (unclaimed_[hops_.dst[hop]] == 0) return true;
        if (ports_.is_free(hop, now_)) return false;
        state_[hop] = State::blocked;
        return true;
    }

    void consider(std::int32_t hop) {
        if (is_hopeless(hop)) return;
        if (too_late(hop)) {
            state_[hop] = State::deferred;
            deferred_.push_back(hop);
            return;
        }
        const auto chunk = choose(hop);
        if (chunk < 0) return;
        send(hop, static_cast<std::uint32_t>(chunk));
    }

    void send(std::int32_t hop, std::uint32_t chunk) {
        state_[hop] = State::blocked;
        ports_.take(hop, now_);
        note(hop, chunk, 0);
        if (options_.rotate) ++sent_[hops_.steps[hop][0]];
        if (hops_.multicast) send_copies(hop, chunk);
    }

    // Switches that copy take the chunk along to everyone who lacks it and whose links are free.
    // A hop that was idle stays so: its source has nothing more for its destination than before.
    void send_copies(std::int32_t hop, std::uint32_t chunk) {
        for (auto other : hops_.out[hops_.src[hop]]) {
            if (claimed_.has(hops_.dst[other], chunk) || comes_again(other, chunk)) continue;
            if (too_late(other)) continue;
            if (const auto shared = ports_.join(other, now_); shared > 0)
                note(other, chunk, shared);
        }
    }

    // Whether the hop would bring the chunk into a region that it has entered already.
    bool comes_again(std::int32_t hop, std::uint32_t chunk) const {
        if (!options_.regions) return false;
        const auto into = (*options_.regions)[hops_.dst[hop]];
        return into != (*options_.regions)[hops_.src[hop]] && claimed_in_.has(into, chunk);
    }

    // Writes down what was sent; the first `shared` of its links are held by another hop already.
    void note(std::int32_t hop, std::uint32_t chunk, std::int64_t shared) {
        const auto dst = hops_.dst[hop];
        claimed_.add(dst, chunk);
        if (options_.regions) claimed_in_.add((*options_.regions)[dst], chunk);
        ++copies_[chunk];
        --unclaimed_[dst];
        schedule_.chunk.push_back(static_cast<std::int32_t>(chunk));
        schedule_.hop.push_back(hop);
        if (!hops_.single_links) schedule_.route.push_back(ports_.route(hop));
        schedule_.start.push_back(now_);
        for (auto i = hops_.steps.offsets[hop] + shared; i < hops_.steps.offsets[hop + 1]; ++i)
            events_.push(now_, release_lane_[i], hops_.steps.items[i], release);
        events_.push(now_, arrival_lane_[hop], hop, chunk);
    }

    // The deadline guard: a slow link that starts late stretches the end. If this send would end
    // after the target, and the faster ways into the destination could bring all it still lacks
    // by then, leave it to them.
    bool too_late(std::int32_t hop) const {
        const ps end = now_ + times_.duration[hop];
        if (end <= target_) return false;
        const auto dst = hops_.dst[hop];
        std::int64_t room = 0;
        for (auto other : ingress_[dst]) {
            if (times_.duration[other] >= times_.duration[hop]) continue;
            const auto last = hops_.steps.offsets[other + 1] - 1;
            const ps held = times_.holds[last].length;
            const ps begin = std::max(now_, ports_.free_at(hops_.steps.items[last]));
            const ps tail = times_.duration[other] - held;
            if (end - tail > begin) room += (end - tail - begin) / held;
        }
        return room >= unclaimed_[dst];
    }

    // When nothing moves any more, the deferred hops get time for at least the shortest of them.
    bool relax_target() {
        ps shortest = never;
        for (auto hop : deferred_)
            if (unclaimed_[hops_.dst[hop]] > 0)
                shortest = std::min(shortest, times_.duration[hop]);
        if (shortest == never) return false;
        target_ = now_ + shortest;
        for (auto hop : deferred_) wake(hop);
        deferred_.clear();
        return true;
    }

    std::int64_t choose(std::int32_t hop) {
        const auto src = hops_.src[hop], dst = hops_.dst[hop];
        onward_.clear();
        for (auto next : hops_.out[dst]) {
            const auto beyond = hops_.dst[next];
            if (beyond != src && unclaimed_[beyond] > 0) onward_.push_back(claimed_.row(beyond));
        }
        if (options_.regions && (*options_.regions)[src] != (*options_.regions)[dst]) {
            const auto region = (*options_.regions)[dst];
            if (const auto chunk = choose_from(src, claimed_in_.row(region)); chunk >= 0)
                return chunk;
        }
        return choose_from(src, claimed_.row(dst));
    }

    std::int64_t choose_from(std::int32_t src, const std::uint64_t* claimed) {
        const auto found = most_wanted(have_.row(src), claimed, onward_, have_.blocks(),
                                       random_.below(have_.blocks()));
        return found.wanted_by < 0 ? -1 : rarest(found);
    }

    // Of equally wanted chunks the one with the fewest copies; a few are looked at.
    std::int64_t rarest(const Candidates& found) {
        constexpr int enough = 4;
        std::int64_t best = -1;
        std::uint32_t fewest = ~std::uint32_t{0};
        const auto first = random_.below(words_per_block);
        for (std::uint32_t i = 0, seen = 0; i < words_per_block && seen < enough; ++i) {
            const auto word = (first + i) % words_per_block;
            for (auto bits = found.bits[word]; bits && seen < enough; bits &= bits - 1, ++seen) {
                const auto chunk = (found.block * words_per_block + word) * 64 +
                                   static_cast<std::uint32_t>(std::countr_zero(bits));
                if (copies_[chunk] < fewest) fewest = copies_[chunk], best = chunk;
            }
        }
        return best;
    }

    void wake(std::int32_t hop) {
        if (state_[hop] == State::ready) return;
        state_[hop] = State::ready;
        ready_.push_back(hop);
    }

    void on_release(std::uint32_t bundle) {
        if (hops_.single_links) {
            wake(static_cast<std::int32_t>(bundle));
            return;
        }
        for (auto hop : hops_using_[bundle])
            if (state_[hop] == State::blocked) wake(hop);
    }

    void on_arrival(const Event& event) {
        const auto npu = hops_.dst[event.subject];
        const auto chunk = event.detail;
        have_.add(npu, chunk);
        wanted_ -= taker_sets_.has(spread_.takers[chunk], npu);
        for (auto hop : hops_.out[npu])
            if (state_[hop] == State::idle && !claimed_.has(hops_.dst[hop], chunk)) wake(hop);
    }

    // ---- afterwards ----

    // Walks backwards and drops the sends nobody needs, those still on their way included.
    void prune() {
        ChunkSets needed(npus_, spread_.chunks());
        for (std::int32_t chunk = 0; chunk < spread_.chunks(); ++chunk)
            for (auto npu : spread_.sets[spread_.takers[chunk]]) needed.add(npu, chunk);
        std::vector<bool> kept(schedule_.chunk.size());
        std::size_t count = 0;
        for (std::size_t i = kept.size(); i-- > 0;) {
            const auto hop = schedule_.hop[i];
            const auto chunk = static_cast<std::uint32_t>(schedule_.chunk[i]);
            kept[i] = needed.has(hops_.dst[hop], chunk);
            if (!kept[i]) continue;
            needed.add(hops_.src[hop], chunk);
            ++count;
        }
        if (count == kept.size()) return;
        auto keep = [&](auto& column) {
            if (column.empty()) return;
            std::size_t next = 0;
            for (std::size_t i = 0; i < kept.size(); ++i)
                if (kept[i]) column[next++] = column[i];
            column.resize(count);
        };
        keep(schedule_.chunk);
        keep(schedule_.hop);
        keep(schedule_.route);
        keep(schedule_.start);
    }

    const Hops& hops_;
    const HopTimes& times_;
    const Spread& spread_;
    const MatchOptions options_;
    Progress& progress_;
    ps target_;
    std::int32_t npus_;
    bool one_speed_;  // then the order of hops does not matter, and keeping it is kind to caches
    Random random_;
    Ports ports_;
    ChunkSets have_, claimed_;           // claimed: had or on the way
    ChunkSets claimed_in_{0, 0};         // by region, if there are any
    ChunkSets taker_sets_{0, 0};         // by set number, over NPUs
    std::vector<std::uint32_t> copies_;  // per chunk: NPUs that have or will have it
    std::vector<std::int32_t> unclaimed_;  // per NPU: chunks not yet on the way to it
    std::vector<State> state_;
    std::vector<std::int32_t> ready_, deferred_;
    std::vector<std::uint32_t> arrival_lane_, release_lane_;
    Rows hops_using_;                         // by bundle; only with switches
    std::vector<std::int32_t> fastest_into_;  // by bundle: the quickest hop that ends with it
    Rows ingress_;                            // by NPU: that hop of each of its in-bundles
    std::vector<std::uint32_t> turn_, port_size_, sent_;
    std::vector<std::tuple<std::uint32_t, std::size_t, std::int32_t>> by_turn_;  // scratch
    std::vector<const std::uint64_t*> onward_;
    EventQueue events_;
    std::int64_t wanted_ = 0;
    ps now_ = 0;
    Schedule schedule_;
};

}  // namespace

bool is_one_speed(const HopTimes& times) {
    return std::all_of(times.duration.begin(), times.duration.end(),
                       [&](ps duration) { return duration == times.duration.front(); });
}

Schedule match(const Hops& hops, const HopTimes& times, const Spread& spread,
               const MatchOptions& options, Progress& progress) {
    return hops.single_links ? Matcher<LinkPorts>(hops, times, spread, options, progress).run()
                             : Matcher<RoutedPorts>(hops, times, spread, options, progress).run();
}

}  // namespace weft
