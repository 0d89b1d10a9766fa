// Rows one by one: their numbers, their routes and their times.
#include "judge/parts.h"

namespace weft::judge {
namespace {

constexpr std::int64_t block_rows = 1 << 17;
constexpr int place_bits = 29;

struct Ends {
    static constexpr std::int32_t empty = -1, broken = -2;
    std::int32_t from = empty, to = empty;
};

// The nodes a route joins, if its links follow each other through switches.
Ends ends_of(const Claim& claim, std::int32_t route) {
    const auto links = claim.timing->routes[route];
    if (links.empty()) return {};
    const Network& network = claim.timing->network;
    for (std::size_t i = 1; i < links.size(); ++i) {
        const std::int32_t node = network.dst[links[i - 1]];
        if (network.src[links[i]] != node || !network.is_switch(node))
            return {Ends::broken, Ends::broken};
    }
    return {network.src[links.front()], network.dst[links.back()]};
}

// Whether the table of routes can be read at all: returns the first bad route, or -1.
std::int64_t bad_route(const Claim& claim) {
    const auto offsets = claim.timing->routes.offsets;
    if (offsets.empty() || offsets.front() != 0) return 0;
    const auto routes = static_cast<std::int64_t>(offsets.size()) - 1;
    for (std::int64_t r = 0; r < routes; ++r) {
        if (offsets[r + 1] < offsets[r] ||
            offsets[r + 1] > static_cast<std::int64_t>(claim.timing->routes.items.size()))
            return r;
        for (auto link : claim.timing->routes[static_cast<std::int32_t>(r)])
            if (link < 0 || link >= claim.timing->network.links()) return r;
    }
    return offsets.back() == static_cast<std::int64_t>(claim.timing->routes.items.size()) ? -1
                                                                                          : routes;
}

bool good_dep_offsets(const Claim& claim) {
    const auto offsets = claim.rows.dep_offsets;
    return offsets.empty() ||
           (offsets.front() == 0 && std::is_sorted(offsets.begin(), offsets.end()) &&
            offsets.back() == static_cast<std::int64_t>(claim.rows.deps.size()));
}

bool is_there(const Claim& claim, std::int32_t npu) {
    return npu >= 0 && npu < claim.npus && (claim.removed.empty() || !claim.removed[npu]);
}

class RowCheck {
  public:
    RowCheck(const Claim& claim, const std::vector<Ends>& ends) : claim_(claim), ends_(ends) {}

    void operator()(std::int64_t begin, std::int64_t end, First& first) const {
        for (std::int64_t row = begin; row < end; ++row)
            if (auto found = check(row)) return first.offer(*found);
    }

  private:
    using Finding = std::optional<Violation>;

    Finding check(std::int64_t row) const {
        const std::int32_t chunk = claim_.rows.chunk[row];
        if (chunk < 0 || chunk >= claim_.chunks.size()) return at(row, Code::chunk_range, chunk);
        for (std::int32_t npu : {claim_.rows.src[row], claim_.rows.dst[row]}) {
            if (npu < 0 || npu >= claim_.npus) return at(row, Code::npu_range, npu);
            if (!is_there(claim_, npu)) return at(row, Code::npu_removed, npu);
        }
        if (!in_reach(chunk, claim_.rows.dst[row]))
            return at(row, Code::out_of_reach, claim_.rows.dst[row]);
        if (claim_.rows.reduce[row] && !claim_.chunks.reduce[chunk])
            return at(row, Code::not_reduction);
        for (auto column : {claim_.rows.src_place, claim_.rows.dst_place})
            if (!column.empty() && !good_place(column[row]))
                return at(row, Code::place_range, column[row]);
        if (!claim_.rows.dep_offsets.empty())
            for (auto i = claim_.rows.dep_offsets[row]; i < claim_.rows.dep_offsets[row + 1]; ++i)
                if (claim_.rows.deps[i] < 0 || claim_.rows.deps[i] >= row)
                    return at(row, Code::dep_range, claim_.rows.deps[i]);
        return claim_.timed ? check_route(row) : std::nullopt;
    }

    Finding check_route(std::int64_t row) const {
        const std::int32_t route = claim_.rows.route[row];
        if (route < 0 || route >= static_cast<std::int64_t>(ends_.size()))
            return at(row, Code::route_range, route);
        const Ends ends = ends_[route];
        if (ends.from == Ends::broken) return at(row, Code::route_broken, route);
        const bool local = claim_.rows.src[row] == claim_.rows.dst[row];
        const bool fits =
            local ? ends.from == Ends::empty
                  : ends.from == claim_.rows.src[row] && ends.to == claim_.rows.dst[row];
        if (!fits) return at(row, Code::route_ends, ends.from, ends.to);
        return claim_.timing->cost.store_and_forward ? check_buffers(row) : std::nullopt;
    }

    // What is forwarded whole must fit into every switch on the way.
    Finding check_buffers(std::int64_t row) const {
        const Network& network = claim_.timing->network;
        for (auto link : claim_.timing->routes[claim_.rows.route[row]])
            if (network.speed[link].buffer < claim_.chunks.bytes[claim_.rows.chunk[row]])
                return at(row, Code::buffer_full, network.dst[link], network.speed[link].buffer);
        return std::nullopt;
    }

    // What never leaves its reach is never sent from outside it either.
    bool in_reach(std::int32_t chunk, std::int32_t npu) const {
        const auto set = claim_.chunks.reach[chunk];
        if (set < 0) return true;
        return std::ranges::binary_search(claim_.chunks.sets[set], npu);
    }

    // SCRATCH is the last buffer and has any number of slots; the others one place a chunk.
    bool good_place(std::int32_t place) const {
        if (place < 0) return false;
        return (place >> place_bits) == 3 ||
               (place & ((1 << place_bits) - 1)) < claim_.chunks.size();
    }

    Violation at(std::int64_t row, Code code, std::int64_t other = -1,
                 std::int64_t detail = -1) const {
        return {.code = code,
                .row = row,
                .chunk = claim_.rows.chunk[row],
                .other = other,
                .detail = detail};
    }

    const Claim& claim_;
    const std::vector<Ends>& ends_;
};

}  // namespace

First check_rows(const Claim& claim) {
    First first;
    for (auto npu : claim.chunks.sets.items)
        if (!is_there(claim, npu)) first.offer({.code = Code::demand_npu, .npu = npu});
    if (!good_dep_offsets(claim)) first.offer({.code = Code::dep_offsets});
    std::vector<Ends> ends;
    if (claim.timed) {
        if (const auto bad = bad_route(claim); bad >= 0)
            first.offer({.code = Code::routes_broken, .other = bad});
        else
            for (std::size_t r = 0; r + 1 < claim.timing->routes.offsets.size(); ++r)
                ends.push_back(ends_of(claim, static_cast<std::int32_t>(r)));
    }
    if (first.found()) return first;
    return in_blocks<RowCheck>(claim.row_count(), block_rows,
                               [&] { return RowCheck(claim, ends); });
}

First check_times(const Claim& claim, const Hops& hops) {
    const auto check = [&](std::int64_t row, Hops::Scratch& scratch) -> std::optional<Violation> {
        const ps start = claim.rows.start[row], end = claim.rows.end[row];
        const auto wrong = [&](Code code, std::int64_t other, std::int64_t detail = -1) {
            return Violation{.code = code,
                             .time = start,
                             .row = row,
                             .chunk = claim.rows.chunk[row],
                             .other = other,
                             .detail = detail};
        };
        if (start < 0) return wrong(Code::negative_start, start);
        const ps duration = hops.of(row, scratch).duration;
        if (end < start || end - start != duration)
            return wrong(Code::duration, end, start > never - duration ? never : start + duration);
        if (!claim.rows.has_deps()) return std::nullopt;
        for (auto i = claim.rows.dep_offsets[row]; i < claim.rows.dep_offsets[row + 1]; ++i)
            if (const auto dep = claim.rows.deps[i]; claim.rows.end[dep] > start)
                return wrong(Code::dep_late, dep, claim.rows.end[dep]);
        return std::nullopt;
    };
    auto check_block = [&, scratch = Hops::Scratch()](std::int64_t begin, std::int64_t end,
                                                      First& first) mutable {
        for (auto row = begin; row < end; ++row)
            if (const auto found = check(row, scratch)) first.offer(*found);
    };
    return in_blocks<decltype(check_block)>(claim.row_count(), block_rows,
                                            [&] { return check_block; });
}

Hops::Hops(const Claim& claim) : claim_(claim) {
    constexpr std::size_t most_sizes = 16;
    std::vector<std::int64_t> sizes;
    size_of_.reserve(claim.chunks.bytes.size());
    for (auto bytes : claim.chunks.bytes) {
        const auto place = std::find(sizes.begin(), sizes.end(), bytes);
        if (place == sizes.end() && sizes.size() == most_sizes) return;
        size_of_.push_back(static_cast<std::uint8_t>(place - sizes.begin()));
        if (place == sizes.end()) sizes.push_back(bytes);
    }
    if (sizes.size() * routes() > claim.rows.chunk.size()) return;
    durations_.reserve(sizes.size() * routes());
    holds_.reserve(sizes.size() * claim.timing->routes.items.size());
    Scratch scratch;
    for (auto bytes : sizes)
        for (std::size_t r = 0; r < routes(); ++r) {
            const Hop hop = compute(static_cast<std::int32_t>(r), bytes, scratch);
            durations_.push_back(hop.duration);
            holds_.insert(holds_.end(), hop.holds.begin(), hop.holds.end());
        }
}

Hops::Hop Hops::compute(std::int32_t route, std::int64_t bytes, Scratch& scratch) const {
    const auto links = claim_.timing->routes[route];
    scratch.resize(links.size());
    if (links.empty()) return {0, {}};
    std::vector<Speed> speeds;
    for (auto link : links) speeds.push_back(claim_.timing->network.speed[link]);
    const ps duration = hop(claim_.timing->cost, bytes, speeds, scratch);
    return {duration, scratch};
}

}  // namespace weft::judge
