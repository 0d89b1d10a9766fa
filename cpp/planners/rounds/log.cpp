#include "planners/rounds/log.h"

#include <bit>
#include <cstring>

namespace weft {
namespace {

// One round of a log, which may come from a file: nothing is read outside of it.
class Round {
  public:
    Round(const RoundLogView& view, LogWindow& log, std::int64_t number)
        : width_(view.wide ? 4 : 2) {
        const auto begin = view.offsets[number], end = view.offsets[number + 1];
        const auto words = (view.links + 63) / 64;
        whole_ = 0 <= begin && begin <= end && end <= view.log.size() && end - begin >= words * 8;
        if (!whole_) return;
        const auto bytes = log.at(begin, end);
        bitmap_ = bytes.first(words * 8);
        chunks_ = bytes.subspan(words * 8);
    }

    bool whole() const { return whole_; }
    std::int64_t words() const { return static_cast<std::int64_t>(bitmap_.size()) / 8; }
    std::uint64_t word(std::int64_t number) const {
        std::uint64_t bits;
        std::memcpy(&bits, bitmap_.data() + number * 8, sizeof bits);
        return bits;
    }
    // The chunk of the link that is the n-th of those that carry something; -1 if it is missing.
    std::int32_t chunk(std::int64_t n) const {
        if ((n + 1) * width_ > static_cast<std::int64_t>(chunks_.size())) return -1;
        std::uint32_t number = 0;
        std::memcpy(&number, chunks_.data() + n * width_, width_);
        return static_cast<std::int32_t>(number);
    }

  private:
    std::int64_t width_;
    bool whole_;
    std::span<const std::uint8_t> bitmap_, chunks_;
};

bool add(RoundEntries& found, const Round& round, std::int64_t number, std::int64_t link,
         std::int64_t n) {
    const auto chunk = round.chunk(n);
    if (chunk < 0) return false;
    found.round.push_back(static_cast<std::int32_t>(number));
    found.link.push_back(static_cast<std::int32_t>(link));
    found.chunk.push_back(chunk);
    return true;
}

bool add_all(RoundEntries& found, const Round& round, std::int64_t number, std::int64_t links) {
    std::int64_t n = 0;
    for (std::int64_t w = 0; w < round.words(); ++w)
        for (auto bits = round.word(w); bits; bits &= bits - 1, ++n) {
            const auto link = w * 64 + std::countr_zero(bits);
            if (link >= links || !add(found, round, number, link, n)) return false;
        }
    return true;
}

bool add_some(RoundEntries& found, const Round& round, std::int64_t number,
              std::span<const std::int32_t> links) {
    std::int64_t w = 0, before = 0;  // links that carry something in the words before w
    for (const auto link : links) {
        for (; w < link / 64; ++w) before += std::popcount(round.word(w));
        const auto bits = round.word(w);
        const auto own = std::uint64_t{1} << (link % 64);
        if (!(bits & own)) continue;
        if (!add(found, round, number, link, before + std::popcount(bits & (own - 1))))
            return false;
    }
    return true;
}

template <class Add>
RoundEntries collect(const RoundLogView& view, std::int64_t count, Add add_round) {
    RoundEntries found;
    LogWindow log(view.log);
    for (auto* column : {&found.round, &found.link, &found.chunk}) column->reserve(count);
    for (std::int64_t r = 0; r + 1 < static_cast<std::int64_t>(view.offsets.size()); ++r) {
        const Round round(view, log, r);
        if (round.whole() && add_round(found, round, r)) continue;
        found.damaged = r;
        break;
    }
    return found;
}

}  // namespace

RoundEntries round_entries(const RoundLogView& view, std::int64_t count) {
    return collect(view, count, [&](auto& found, const Round& round, std::int64_t number) {
        return add_all(found, round, number, view.links);
    });
}

RoundEntries round_entries(const RoundLogView& view, std::span<const std::int32_t> links) {
    return collect(view, 0, [&](auto& found, const Round& round, std::int64_t number) {
        return add_some(found, round, number, links);
    });
}

}  // namespace weft
