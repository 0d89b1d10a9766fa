// Links: each carries one chunk at a time, for one row or for several that are one transmission.
#include "judge/parts.h"

namespace weft::judge {
namespace {

// At most so many holds are sorted at once: 24 bytes each.
constexpr std::int64_t batch_holds = 1 << 24;

struct Interval {
    ps begin = -1;
    std::int64_t row = -1;
    ps until = 0;
    auto operator<=>(const Interval&) const = default;
};

// Multicast: whether two rows that hold `link` at the same time are one transmission there. They
// send the same copy at the same time, over the same links up to a switch that copies, where they
// part. (A sum in a place of its own may change between two reads at one time.)
bool are_one_copy(const Claim& claim, std::int64_t a, std::int64_t b, std::int32_t link) {
    if (claim.rows.chunk[a] != claim.rows.chunk[b] || claim.rows.src[a] != claim.rows.src[b] ||
        claim.rows.start[a] != claim.rows.start[b] || claim.rows.reduce[a] || claim.rows.reduce[b])
        return false;
    if (claim.has_places() &&
        (claim.chunks.reduce[claim.rows.chunk[a]] || claim.rows.src_place.empty() ||
         claim.rows.src_place[a] != claim.rows.src_place[b]))
        return false;
    const auto one = claim.timing->routes[claim.rows.route[a]],
               two = claim.timing->routes[claim.rows.route[b]];
    bool shared = false;
    std::size_t i = 0;
    for (; i < one.size() && i < two.size() && one[i] == two[i]; ++i) shared |= one[i] == link;
    return shared && i < one.size() && i < two.size() &&
           claim.timing->network.copies_at(claim.timing->network.dst[one[i - 1]]);
}

// Where something is written that is not added, by NPU, place and time: ascending. Most algorithms
// have no sums in switches, so they are found when first asked for.
class Overwrites {
  public:
    explicit Overwrites(const Claim& claim) : claim_(claim) {}

    // Whether one comes between two rows that write there at one time.
    bool between(std::int64_t a, std::int64_t b) const {
        std::call_once(found_, [&] { find(); });
        const auto [npu, place, end, row] = key(std::min(a, b));
        const auto found = std::upper_bound(rows_.begin(), rows_.end(), Key{npu, place, end, row});
        return found != rows_.end() && *found < Key{npu, place, end, std::max(a, b)};
    }

  private:
    using Key = std::tuple<std::int32_t, std::int32_t, ps, std::int64_t>;
    Key key(std::int64_t row) const {
        return {claim_.rows.dst[row], claim_.rows.writes(row), claim_.rows.end[row], row};
    }
    void find() const {
        for (std::int64_t row = 0; row < claim_.row_count(); ++row)
            if (!claim_.rows.reduce[row]) rows_.push_back(key(row));
        std::sort(rows_.begin(), rows_.end());
    }

    const Claim& claim_;
    mutable std::once_flag found_;
    mutable std::vector<Key> rows_;
};

// A sum in a switch, which is a multicast backwards: two rows add to the same place at the same
// time, over the same links from a switch that adds, where they meet. What arrives is one number:
// nothing may be written between its parts.
bool are_one_sum(const Claim& claim, const Overwrites& overwrites, std::int64_t a, std::int64_t b,
                 std::int32_t link) {
    const auto& rows = claim.rows;
    if (!rows.reduce[a] || !rows.reduce[b] || rows.chunk[a] != rows.chunk[b] ||
        rows.dst[a] != rows.dst[b] || rows.end[a] != rows.end[b] ||
        rows.writes(a) != rows.writes(b))
        return false;
    const auto one = claim.timing->routes[rows.route[a]], two = claim.timing->routes[rows.route[b]];
    bool shared = false;
    std::size_t i = 0;  // links in common, from the last
    for (; i < one.size() && i < two.size(); ++i) {
        const auto last = one[one.size() - 1 - i];
        if (last != two[two.size() - 1 - i]) break;
        shared |= last == link;
    }
    return shared && i < one.size() && i < two.size() &&
           claim.timing->network.adds_at(claim.timing->network.src[one[one.size() - i]]) &&
           !overwrites.between(a, b);
}

// Whether two rows that hold a link for the same time are one transmission there.
bool are_one(const Claim& claim, const Overwrites& overwrites, std::int64_t a, std::int64_t b,
             std::int32_t link) {
    return are_one_copy(claim, a, b, link) || are_one_sum(claim, overwrites, a, b, link);
}

// Watches one link, given its holds in order of time.
struct Watch {
    ps begin = -1;     // of the last hold
    Interval longest;  // the hold that lasts longest so far

    void take(const Interval& hold, std::int32_t link, const Claim& claim,
              const Overwrites& overwrites, First& first) {
        const bool same_hold = hold.begin == longest.begin && hold.until == longest.until;
        if (hold.begin < longest.until &&
            !(same_hold && are_one(claim, overwrites, longest.row, hold.row, link)))
            first.offer({.code = Code::link_taken,
                         .time = hold.begin,
                         .row = hold.row,
                         .chunk = claim.rows.chunk[hold.row],
                         .link = link,
                         .other = longest.row,
                         .detail = longest.until});
        begin = hold.begin;
        if (hold.until > longest.until) longest = hold;
    }
};

class LinkCheck {
  public:
    LinkCheck(const Claim& claim, const Hops& hops)
        : claim_(claim), hops_(hops), overwrites_(claim), links_(claim.timing->network.links()),
          unsorted_(links_), holds_(links_) {}

    First run() {
        watch_rows();
        for (std::int32_t begin = 0; begin < links_;) {
            std::int32_t end = begin;
            for (std::int64_t sum = 0; end < links_; ++end) {
                sum += unsorted_[end] ? holds_[end] : 0;
                if (sum > batch_holds && end > begin) break;
            }
            sort_and_watch(begin, end);
            begin = end;
        }
        return first_;
    }

  private:
    void each_hold(const auto& act) {
        for (std::int64_t row = 0; row < claim_.row_count(); ++row) {
            const auto holds = hops_.of(row, scratch_).holds;
            const auto links = claim_.timing->routes[claim_.rows.route[row]];
            const ps start = claim_.rows.start[row];
            for (std::size_t i = 0; i < links.size(); ++i) {
                const ps begin = start + holds[i].offset;
                act(links[i], Interval{begin, row, begin + holds[i].length});
            }
        }
    }

    // Most tables list a link's holds in order of time already: then one look is enough.
    void watch_rows() {
        std::vector<Watch> watches(links_);
        each_hold([&](std::int32_t link, const Interval& hold) {
            ++holds_[link];
            Watch& watch = watches[link];
            if (hold.begin < watch.begin) unsorted_[link] = true;
            if (!unsorted_[link]) watch.take(hold, link, claim_, overwrites_, first_);
        });
    }

    void sort_and_watch(std::int32_t begin, std::int32_t end) {
        std::vector<std::int64_t> offsets{0};
        for (auto link = begin; link < end; ++link)
            offsets.push_back(offsets.back() + (unsorted_[link] ? holds_[link] : 0));
        if (offsets.back() == 0) return;
        std::vector<Interval> intervals(offsets.back());
        std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
        each_hold([&](std::int32_t link, const Interval& hold) {
            if (link >= begin && link < end && unsorted_[link])
                intervals[next[link - begin]++] = hold;
        });
        const auto watch_links = [&](std::int64_t from, std::int64_t to, First& first) {
            for (auto i = from; i < to; ++i) {
                const std::span holds(intervals.data() + offsets[i],
                                      intervals.data() + offsets[i + 1]);
                std::sort(holds.begin(), holds.end());
                Watch watch;
                for (const auto& hold : holds)
                    watch.take(hold, begin + static_cast<std::int32_t>(i), claim_, overwrites_,
                               first);
            }
        };
        first_.offer(
            in_blocks<decltype(watch_links)>(end - begin, 256, [&] { return watch_links; }));
    }

    const Claim& claim_;
    const Hops& hops_;
    const Overwrites overwrites_;
    std::int32_t links_;
    std::vector<std::uint8_t> unsorted_;
    std::vector<std::int64_t> holds_;  // how many, of each link
    Hops::Scratch scratch_;
    First first_;
};

}  // namespace

First check_links(const Claim& claim, const Hops& hops) { return LinkCheck(claim, hops).run(); }

}  // namespace weft::judge
