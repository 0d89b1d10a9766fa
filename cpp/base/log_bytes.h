// The bytes of a log of rounds: in memory, or in a file that others may change at any time. It
// knows nothing of what they mean, so that the judge may use it too.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace weft {

// The file is shorter than it was, or can no longer be read.
struct LogChanged : std::runtime_error {
    LogChanged() : std::runtime_error("the log changed while it was in use") {}
};

struct LogBytes {
    std::span<const std::uint8_t> memory;  // if it lies there
    int file = -1;                         // else open for reading
    std::int64_t at = 0, length = 0;       // where in the file it begins, and how long it is

    std::int64_t size() const {
        return file < 0 ? static_cast<std::int64_t>(memory.size()) : length;
    }
};

// Reads a log in order. What lies in a file is copied first: a copy stays what it was when it was
// checked, while a mapped page may change or go. Each thread has a window of its own.
class LogWindow {
  public:
    explicit LogWindow(const LogBytes& log) : log_(log) {}

    // The bytes [begin, end) of the log, which lie within it, until the next call. Throws
    // `LogChanged`.
    std::span<const std::uint8_t> at(std::int64_t begin, std::int64_t end) {
        const auto length = static_cast<std::size_t>(end - begin);
        if (log_.file < 0) return log_.memory.subspan(static_cast<std::size_t>(begin), length);
        if (begin < first_ || end > first_ + static_cast<std::int64_t>(copy_.size()))
            fetch(begin, end);
        return {copy_.data() + (begin - first_), length};
    }

  private:
    static constexpr std::int64_t at_once = 256 << 10;  // short rounds are not worth a call each

    void fetch(std::int64_t begin, std::int64_t end) {
        const std::int64_t last = std::max(end, std::min(begin + at_once, log_.size()));
        copy_.resize(static_cast<std::size_t>(last - begin));
        first_ = begin;
        for (std::size_t done = 0; done < copy_.size();) {
            const auto count = ::pread(log_.file, copy_.data() + done, copy_.size() - done,
                                       log_.at + begin + static_cast<std::int64_t>(done));
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) {
                copy_.clear();
                throw LogChanged();
            }
            done += static_cast<std::size_t>(count);
        }
    }

    const LogBytes log_;
    std::vector<std::uint8_t> copy_;
    std::int64_t first_ = 0;  // where the copy begins
};

}  // namespace weft
