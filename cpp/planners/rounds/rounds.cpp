#include "planners/rounds/rounds.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/team.h"
#include "planners/rounds/writer.h"

namespace weft {
namespace {

constexpr int most_threads = 64;
constexpr std::int32_t npus_a_piece = 64;    // planned in one go
constexpr std::int32_t npus_a_thread = 256;  // fewer are not worth a thread

std::vector<std::int64_t> slots_of(const RoundState& state) {
    std::vector<std::int64_t> slot_of(state.link.size());
    for (std::size_t slot = 0; slot < slot_of.size(); ++slot)
        slot_of[state.link[slot]] = static_cast<std::int64_t>(slot);
    return slot_of;
}

class Run {
  public:
    Run(RoundState& state, const RoundJob& job, const Search& search, int size)
        : state_(state), job_(job), seed_(search.seed), progress_(search.progress), size_(size),
          writer_(job.file, job.at, slots_of(state), state.number_of, size), tallies_(2 * size) {
        for (auto& tally : tallies_) tally.by_range.assign(size, 0);
        for (const auto link : state.link)
            range_of_.push_back(static_cast<std::uint16_t>(writer_.range_of(link)));
        progress_.begin(state.deliveries);
    }

    // What every member of the team does, round after round. All members see the same figures at
    // the same point, so that they agree on when to end.
    void work(Place place) {
        const int mine = place.number;
        const auto quiet_rounds =
            static_cast<std::uint32_t>(std::max(state_.longest_lag, state_.longest_period));
        std::int64_t begin = 0, sent = 0;
        for (std::uint32_t round = 0, quiet = 0; sent < state_.deliveries && quiet <= quiet_rounds;
             ++round) {
            plan(mine, round);
            place.wait();
            std::int64_t before = 0, sends = 0;
            for (int range = 0; range < size_; ++range) {
                if (range == mine) before = sends;
                for (int member = 0; member < size_; ++member)
                    sends += tally(round, member).by_range[range];
            }
            commit(mine, round);
            if (const int error = writer_.write(mine, begin, before, sends, state_.picks(round)))
                error_ = error;
            begin += writer_.size_of(sends);
            sent += sends;
            quiet = sends ? 0 : quiet + 1;
            if (mine == 0) conclude(round, begin, sends);
            place.wait();
            if (stop_ || error_) break;
        }
    }

    Rounds outcome() {
        if (error_) throw std::system_error(error_, std::generic_category());
        if (stop_) throw Cancelled();
        found_.complete = found_.sends == state_.deliveries;
        return std::move(found_);
    }

  private:
    struct alignas(128) Tally {  // apart, since members count side by side
        std::vector<std::int64_t> by_range;
    };
    Tally& tally(std::uint32_t round, int member) { return tallies_[round % 2 * size_ + member]; }

    // Pieces go to whoever is free: the result does not depend on it.
    void plan(int mine, std::uint32_t round) try {
        auto& counts = tally(round, mine).by_range;
        std::fill(counts.begin(), counts.end(), 0);
        for (std::int32_t piece; (piece = next_[round % 2]++) * npus_a_piece < state_.npus;) {
            const auto first = piece * npus_a_piece;
            plan_round(state_, first, std::min(state_.npus, first + npus_a_piece), round, seed_,
                       range_of_, counts);
        }
    } catch (const std::bad_alloc&) {
        starved_ = true;  // said in `conclude`: others may still read the error of the last round
    }

    void commit(int mine, std::uint32_t round) {
        const auto share = [&](int member) {
            return static_cast<std::int32_t>(static_cast<std::int64_t>(state_.npus) * member /
                                             size_);
        };
        for (auto npu = share(mine); npu < share(mine + 1); ++npu) state_.commit(npu, round);
    }

    void conclude(std::uint32_t round, std::int64_t end, std::int64_t sends) try {
        next_[(round + 1) % 2] = 0;
        if (starved_) error_ = ENOMEM;
        stop_ = progress_.cancelled.load();
        found_.sends += sends;
        progress_.done += sends;
        found_.offsets.push_back(end);
    } catch (const std::bad_alloc&) {
        error_ = ENOMEM;
    }

    RoundState& state_;
    const RoundJob& job_;
    const std::uint64_t seed_;
    Progress& progress_;
    int size_;
    RoundWriter writer_;
    std::vector<std::uint16_t> range_of_;  // of links, by slot
    std::vector<Tally> tallies_;           // of this round and the one before
    std::atomic<std::int32_t> next_[2]{};
    std::atomic<int> error_{0};
    std::atomic<bool> stop_{false}, starved_{false};
    Rounds found_;
};

}  // namespace

Rounds run_rounds(const Network& network, const RoundJob& job, const Search& search) {
    RoundState state(network, job.period, job.lag, job.owner, search.seed);
    const int wanted =
        std::clamp(std::min(search.threads, state.npus / npus_a_thread), 1, most_threads);
    std::optional<Run> run;
    as_team(
        wanted, [&](int size) { run.emplace(state, job, search, size); },
        [&](Place place) { run->work(place); });
    return run->outcome();
}

}  // namespace weft
