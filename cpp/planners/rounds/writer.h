// Puts rounds into the log on disk: a bitmap of links, then the chunks they carry.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "planners/rounds/state.h"

namespace weft {

static_assert(std::endian::native == std::endian::little, "the log is little-endian");

// The log of rounds, as `RoundLog` in Python describes it, in an open file. Links are split in
// ranges of whole words of the bitmap, so that ranges can be written side by side.
class RoundWriter {
  public:
    // `slot_of[l]`: where what link l carries is found among the picks of a round. `number_of`:
    // the chunk of each label.
    RoundWriter(int file, std::int64_t at, std::vector<std::int64_t> slot_of,
                std::span<const std::uint32_t> number_of, int ranges)
        : file_(file), at_(at), words_(static_cast<std::int64_t>(slot_of.size() + 63) / 64),
          words_a_range_(std::max<std::int64_t>((words_ + ranges - 1) / ranges, 1)),
          slot_of_(std::move(slot_of)), number_of_(number_of),
          width_(number_of.size() > narrow_chunks ? 4 : 2), buffers_(ranges) {
        for (auto& buffer : buffers_) {
            buffer.bitmap.resize(words_a_range_);
            buffer.chunks.resize(words_a_range_ * 64 * width_ + 8);
        }
    }

    int range_of(std::int64_t link) const { return static_cast<int>(link / 64 / words_a_range_); }
    std::int64_t size_of(std::int64_t sends) const {
        return (bitmap_bytes() + sends * width_ + 7) / 8 * 8;
    }

    // Writes one range of the round that begins at byte `begin` of the log and has `sends` in all,
    // `before` of them in earlier ranges. Gives 0, or the errno of what went wrong.
    int write(int range, std::int64_t begin, std::int64_t before, std::int64_t sends,
              const std::uint32_t* picks) {
        const auto first_word = std::min(words_, range * words_a_range_);
        const auto last_word = std::min(words_, first_word + words_a_range_);
        auto& [bitmap, chunks] = buffers_[range];
        std::fill(bitmap.begin(), bitmap.end(), 0);
        const auto links = std::span<const std::int64_t>(slot_of_);
        const auto first = static_cast<std::size_t>(first_word) * 64;
        const auto last = std::min(links.size(), static_cast<std::size_t>(last_word) * 64);
        const auto mine = links.subspan(std::min(first, last), last - std::min(first, last));
        auto bytes =
            width_ == 2
                ? encode<std::uint16_t>(mine, picks, number_of_, bitmap.data(), chunks.data())
                : encode<std::uint32_t>(mine, picks, number_of_, bitmap.data(), chunks.data());
        const auto chunks_at = bitmap_bytes() + before * width_;
        if (range + 1 == static_cast<int>(buffers_.size())) {  // the last one fills up
            const auto padding = size_of(sends) - (chunks_at + bytes);
            std::memset(chunks.data() + bytes, 0, padding);
            bytes += padding;
        }
        const int error = put(reinterpret_cast<const std::uint8_t*>(bitmap.data()),
                              (last_word - first_word) * 8, begin + first_word * 8);
        return error ? error : put(chunks.data(), bytes, begin + chunks_at);
    }

  private:
    static constexpr std::size_t narrow_chunks = 1 << 16;  // as in RoundLog

    template <class Number>
    static std::int64_t encode(std::span<const std::int64_t> slot_of, const std::uint32_t* picks,
                               std::span<const std::uint32_t> number_of, std::uint64_t* bitmap,
                               std::uint8_t* chunks) {
        std::int64_t written = 0;
        for (std::size_t i = 0; i < slot_of.size(); ++i) {
            const auto label = picks[slot_of[i]];
            if (label == no_chunk) continue;
            bitmap[i / 64] |= std::uint64_t{1} << (i % 64);
            const auto number = static_cast<Number>(number_of[label]);
            std::memcpy(chunks + written, &number, sizeof number);
            written += sizeof number;
        }
        return written;
    }
    std::int64_t bitmap_bytes() const { return words_ * 8; }
    int put(const std::uint8_t* bytes, std::int64_t count, std::int64_t where) const {
        while (count > 0) {
            const auto done = pwrite(file_, bytes, static_cast<std::size_t>(count), at_ + where);
            if (done < 0 && errno == EINTR) continue;
            if (done < 0) return errno;
            if (done == 0) return EIO;
            bytes += done;
            count -= done;
            where += done;
        }
        return 0;
    }

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
