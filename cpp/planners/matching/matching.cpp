#include "planners/matching/matching.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/chunk_sets.h"
#include "base/events.h"
#include "base/ports.h"
#include "base/random.h"
#include "planners/matching/blocked_hops.h"
#include "planners/matching/choice.h"
#include "planners/matching/deadline.h"
#include "planners/matching/rotation.h"

namespace weft {
namespace {

// Walks backwards and drops the sends that no taker needs, directly or through another send, those
// still on their way at the end included.
void prune(const Hops& hops, const Chunks& chunks, Schedule& schedule) {
    ChunkSets needed(hops.out.size(), chunks.size());
    for (std::int32_t chunk = 0; chunk < chunks.size(); ++chunk)
        for (auto npu : chunks.takers(chunk)) needed.add(npu, chunk);
    std::vector<bool> kept(schedule.chunk.size());
    for (std::size_t i = kept.size(); i-- > 0;) {
        const auto chunk = static_cast<std::uint32_t>(schedule.chunk[i]);
        kept[i] = needed.has(hops.dst[schedule.hop[i]], chunk);
        if (kept[i]) needed.add(hops.src[schedule.hop[i]], chunk);
    }
    keep_rows(kept, schedule.chunk, schedule.hop, schedule.route, schedule.start);
}

template <class Ports>
class Matcher {
  public:
    Matcher(const Hops& hops, const HopTimes& times, const Chunks& chunks,
            const MatchOptions& options, Progress& progress)
        : hops_(hops), times_(times), chunks_(chunks), options_(options), progress_(progress),
          npus_(hops.out.size()), random_(options.seed), ports_(hops),
          waits_(hops.bundles.size(), hops.count()), guard_(hops, times, options.target),
          have_(npus_, chunks.size()), claimed_(npus_, chunks.size()), copies_(chunks.size(), 0),
          all_meet_(everyone_meets(hops)), counts_(all_meet_ ? chunks.size() : 0, npus_),
          unclaimed_(npus_, chunks.size()), state_(hops.count(), State::ready),
          early_(earliest_offsets(hops, times)), events_(all_delays()) {
        place_holders();
        count_wanted();
        bar_out_of_reach();
        prepare_lanes();
        if (options_.rotate) rotation_.emplace(hops);
        prepare_regions();
    }

    Schedule run() {
        ready_ = hops_.in.items;  // hops into one NPU side by side look at the same sets
        while (wanted_ > 0) {
            match_ready_hops();
            if (events_.empty() && !relax_guard()) break;
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
        prune(hops_, chunks_, schedule_);
        return std::move(schedule_);
    }

  private:
    enum class State : std::uint8_t {
        ready,     // in ready_, to be looked at
        idle,      // its source has nothing for its destination: wakes when a chunk arrives there
        blocked,   // a link on its way is busy: waits for its release
        deferred,  // would end after the target: wakes when the target is relaxed
    };

    // ---- setting up ----

    std::vector<ps> all_delays() const {
        std::vector<ps> delays(times_.duration);
        for (std::size_t i = 0; i < times_.holds.size(); ++i) delays.push_back(release_delay(i));
        return delays;
    }

    // How soon after its start any hop needs each bundle: by so much earlier than the link itself
    // is free may the next hop start.
    static std::vector<ps> earliest_offsets(const Hops& hops, const HopTimes& times) {
        std::vector<ps> early(hops.bundles.size(), never);
        for (std::size_t i = 0; i < times.holds.size(); ++i) {
            auto& least = early[hops.steps.items[i]];
            least = std::min(least, times.holds[i].offset);
        }
        return early;
    }
    ps release_delay(std::size_t step) const {
        const Hold hold = times_.holds[step];
        return hold.offset + hold.length - early_[hops_.steps.items[step]];
    }

    void place_holders() {
        for (std::int32_t chunk = 0; chunk < chunks_.size(); ++chunk)
            for (auto npu : chunks_.holders(chunk)) {
                have_.add(npu, chunk);
                claimed_.add(npu, chunk);
                count_copy(chunk);
                --unclaimed_[npu];
            }
    }
    void count_copy(std::uint32_t chunk) {
        ++copies_[chunk];
        if (all_meet_) counts_.add(chunk);
    }

    void count_wanted() {
        sets_ = ChunkSets(chunks_.sets.size(), npus_);
        for (std::int32_t set = 0; set < chunks_.sets.size(); ++set)
            for (auto npu : chunks_.sets[set]) sets_.add(set, npu);
        for (std::int32_t chunk = 0; chunk < chunks_.size(); ++chunk)
            for (auto npu : chunks_.takers(chunk)) wanted_ += !have_.has(npu, chunk);
    }

    // What counts as claimed from the start is never sent there, nor for the sake of those beyond.
    void bar_out_of_reach() {
        for (std::int32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
            if (chunks_.reach[chunk] < 0) continue;
            for (std::int32_t npu = 0; npu < npus_; ++npu) {
                if (sets_.has(chunks_.reach[chunk], npu) || claimed_.has(npu, chunk)) continue;
                claimed_.add(npu, chunk);
                --unclaimed_[npu];
                some_barred_ = true;
            }
        }
    }

    void prepare_lanes() {
        for (auto delay : times_.duration) arrival_lane_.push_back(events_.lane(delay));
        for (std::size_t i = 0; i < times_.holds.size(); ++i)
            release_lane_.push_back(events_.lane(release_delay(i)));
    }

    void prepare_regions() {
        for (const auto* regions : options_.regions) {
            claimed_in_.emplace_back(regions->count(), chunks_.size());
            for (std::int32_t chunk = 0; chunk < chunks_.size(); ++chunk)
                for (auto npu : chunks_.holders(chunk))
                    claimed_in_.back().add(regions->of[npu], chunk);
        }
    }

    // ---- the loop ----

    void match_ready_hops() {
        if (options_.shuffle) random_.shuffle(ready_);
        if (rotation_) sort_by_turn();
        for (std::size_t i = 0; i < ready_.size(); ++i) consider(ready_[i]);  // it may grow
        ready_.clear();
    }

    // Most ready hops have just been woken in vain: another took the link they share. They are
    // dropped first, and the turn of each of the others is worked out once.
    void sort_by_turn() {
        by_turn_.clear();
        for (auto hop : ready_) {
            if (is_hopeless(hop)) continue;
            by_turn_.push_back({rotation_->turn(hop), by_turn_.size(), hop});
        }
        std::sort(by_turn_.begin(), by_turn_.end());
        ready_.clear();
        for (const auto& [turn, place, hop] : by_turn_) ready_.push_back(hop);
    }

    // Whether nothing can be sent over the hop now, whatever chunk; notes what would change that.
    bool is_hopeless(std::int32_t hop) {
        state_[hop] = State::idle;
        if (unclaimed_[hops_.dst[hop]] == 0) return true;
        const auto step = ports_.blocked_at(hop, now_, times_);
        if (step < 0) return false;
        state_[hop] = State::blocked;
        waits_.wait(hop, hops_.steps.items[step]);
        return true;
    }

    void consider(std::int32_t hop) {
        if (is_hopeless(hop)) return;
        if (too_late(hop)) {
            state_[hop] = State::deferred;
            guard_.defer(hop);
            return;
        }
        const auto chunk = choose(hop);
        if (chunk < 0) return;
        send(hop, static_cast<std::uint32_t>(chunk));
    }

    void send(std::int32_t hop, std::uint32_t chunk) {
        ports_.take(hop, now_, times_);
        note(hop, chunk, 0);
        if (rotation_) rotation_->note_sent(hop);
        if (hops_.multicast) send_copies(hop, chunk);
        if (!is_hopeless(hop)) wake(hop);  // there are parallel links
    }

    // Switches that copy take the chunk along to everyone who lacks it and whose links are free.
    // A hop that was idle stays so: its source has nothing more for its destination than before.
    void send_copies(std::int32_t hop, std::uint32_t chunk) {
        for (auto other : hops_.out[hops_.src[hop]]) {
            if (claimed_.has(hops_.dst[other], chunk) || comes_again(other, chunk)) continue;
            if (too_late(other)) continue;
            if (const auto shared = ports_.join(other, now_, times_); shared > 0)
                note(other, chunk, shared);
        }
    }

    // Whether the hop would bring the chunk into a region that it has entered already.
    bool comes_again(std::int32_t hop, std::uint32_t chunk) const {
        for (std::size_t i = 0; i < claimed_in_.size(); ++i) {
            const auto& regions = *options_.regions[i];
            if (regions.crossed_by[hop] && claimed_in_[i].has(regions.of[hops_.dst[hop]], chunk))
                return true;
        }
        return false;
    }

    // Writes down what was sent; the first `shared` of its links are held by another hop already.
    void note(std::int32_t hop, std::uint32_t chunk, std::int64_t shared) {
        const auto dst = hops_.dst[hop];
        claimed_.add(dst, chunk);
        for (std::size_t i = 0; i < claimed_in_.size(); ++i)
            claimed_in_[i].add(options_.regions[i]->of[dst], chunk);
        count_copy(chunk);
        --unclaimed_[dst];
        schedule_.add(static_cast<std::int32_t>(chunk), hop, ports_.route(), now_);
        for (auto i = hops_.steps.offsets[hop] + shared; i < hops_.steps.offsets[hop + 1]; ++i)
            events_.push(now_, release_lane_[i], hops_.steps.items[i], release);
        events_.push(now_, arrival_lane_[hop], hop, chunk);
    }

    bool too_late(std::int32_t hop) const {
        return guard_.is_too_late(hop, now_, ports_, unclaimed_[hops_.dst[hop]]);
    }

    std::int64_t choose(std::int32_t hop) {
        const auto src = hops_.src[hop], dst = hops_.dst[hop];
        if (!all_meet_) look_onward(src, dst);
        for (std::size_t i = 0; i < claimed_in_.size(); ++i) {
            const auto& regions = *options_.regions[i];
            if (!regions.crossed_by[hop]) continue;
            const auto chunk = choose_from(src, kept_out(i, dst));
            if (chunk >= 0 || options_.strict) return chunk;
        }
        return choose_from(src, claimed_.row(dst));
    }

    // What should not enter an NPU's region by way of it: what is there, and what may not visit it.
    const std::uint64_t* kept_out(std::size_t division, std::int32_t npu) {
        const auto* there = claimed_in_[division].row(options_.regions[division]->of[npu]);
        if (!some_barred_) return there;
        const auto* here = claimed_.row(npu);
        kept_out_.resize(static_cast<std::size_t>(have_.blocks()) * words_per_block);
        for (std::size_t word = 0; word < kept_out_.size(); ++word)
            kept_out_[word] = there[word] | here[word];
        return kept_out_.data();
    }

    void look_onward(std::int32_t src, std::int32_t dst) {
        onward_.clear();
        for (auto next : hops_.out[dst]) {
            const auto beyond = hops_.dst[next];
            if (beyond != src && unclaimed_[beyond] > 0) onward_.push_back(claimed_.row(beyond));
        }
    }

    std::int64_t choose_from(std::int32_t src, const std::uint64_t* claimed) {
        const auto first = random_.below(have_.blocks());
        const auto* have = have_.row(src);
        const auto found = all_meet_ ? counts_.rarest(have, claimed, first)
                                     : most_wanted(have, claimed, onward_, have_.blocks(), first);
        if (found.wanted_by < 0) return -1;
        return rarest(found, copies_, random_.below(words_per_block));
    }

    bool relax_guard() {
        return guard_.relax(now_, unclaimed_, [&](std::int32_t hop) { wake(hop); });
    }
    void wake(std::int32_t hop) {
        if (state_[hop] == State::ready) return;
        state_[hop] = State::ready;
        ready_.push_back(hop);
    }

    void on_release(std::uint32_t bundle) {
        waits_.leave(static_cast<std::int32_t>(bundle), [&](std::int32_t hop) { wake(hop); });
    }

    void on_arrival(const Event& event) {
        const auto npu = hops_.dst[event.subject];
        const auto chunk = event.detail;
        have_.add(npu, chunk);
        wanted_ -= sets_.has(chunks_.post[chunk], npu);
        for (auto hop : hops_.out[npu])
            if (state_[hop] == State::idle && !claimed_.has(hops_.dst[hop], chunk)) wake(hop);
    }

    const Hops& hops_;
    const HopTimes& times_;
    const Chunks& chunks_;
    const MatchOptions options_;
    Progress& progress_;
    std::int32_t npus_;
    Random random_;
    Ports ports_;
    Waits waits_;
    DeadlineGuard guard_;
    std::optional<Rotation> rotation_;
    ChunkSets have_, claimed_;           // claimed: had or on the way
    std::vector<ChunkSets> claimed_in_;  // by division, by region
    ChunkSets sets_{0, 0};               // by set number, over NPUs
    std::vector<std::uint32_t> copies_;  // per chunk: NPUs that have or will have it
    bool all_meet_;                      // then these are counted for all chunks together:
    CopyCounts counts_;
    std::vector<std::int32_t> unclaimed_;  // per NPU: chunks not yet on the way to it
    std::vector<State> state_;
    std::vector<std::int32_t> ready_;
    std::vector<std::tuple<std::uint32_t, std::size_t, std::int32_t>> by_turn_;  // scratch
    std::vector<const std::uint64_t*> onward_;
    bool some_barred_ = false;                                // some chunk may not visit some NPU
    std::vector<std::uint64_t> kept_out_;                     // scratch
    std::vector<ps> early_;                                   // by bundle
    std::vector<std::uint32_t> arrival_lane_, release_lane_;  // by hop, by step
    EventQueue events_;
    std::int64_t wanted_ = 0;
    ps now_ = 0;
    Schedule schedule_;
};

}  // namespace

Schedule match(const Hops& hops, const HopTimes& times, const Chunks& chunks,
               const MatchOptions& options, Progress& progress) {
    return hops.single_links ? Matcher<LinkPorts>(hops, times, chunks, options, progress).run()
                             : Matcher<RoutedPorts>(hops, times, chunks, options, progress).run();
}

}  // namespace weft
