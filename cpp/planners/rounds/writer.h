// Puts rounds into the log on disk: a bitmap of links, then the chunks they carry.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

// The log of rounds, as `RoundLog` in Python describes it, in an open file. Links are split in
// ranges of whole words of the bitmap, so that ranges can be written side by side.
class RoundWriter {
  public:
    // `slot_of[l]`: where what link l carries is found among the picks of a round. `number_of`:
    // the chunk of each label.
    RoundWriter(int file, std::int64_t at, std::vector<std::int64_t> slot_of,
                std::span<const std::uint32_t> number_of, int ranges);

    int range_of(std::int64_t link) const { return static_cast<int>(link / 64 / words_a_range_); }
    std::int64_t size_of(std::int64_t sends) const {
        return (bitmap_bytes() + sends * width_ + 7) / 8 * 8;
    }

    // Writes one range of the round that begins at byte `begin` of the log and has `sends` in all,
    // `before` of them in earlier ranges. Gives 0, or the errno of what went wrong.
    int write(int range, std::int64_t begin, std::int64_t before, std::int64_t sends,
              const std::uint32_t* picks);

  private:
    std::int64_t bitmap_bytes() const { return words_ * 8; }
    int put(const std::uint8_t* bytes, std::int64_t count, std::int64_t where) const;

    struct alignas(128) Buffer {  // of a range; apart, since threads fill them side by side
        std::vector<std::uint64_t> bitmap;
        std::vector<std::uint8_t> chunks;
    };

    int file_;
    std::int64_t at_, words_, words_a_range_;
    std::vector<std::int64_t> slot_of_;
    std::span<const std::uint32_t> number_of_;
    std::int64_t width_;
    std::vector<Buffer> buffers_;
};

}  // namespace weft
