#include "base/log_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace weft {

constexpr std::int64_t at_once = 256 << 10;  // short rounds are not worth a call each

void LogWindow::fetch(std::int64_t begin, std::int64_t end) {
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

}  // namespace weft
