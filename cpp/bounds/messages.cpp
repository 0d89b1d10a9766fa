#include "bounds/messages.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace weft {
namespace {

class Messages {
  public:
    explicit Messages(const MessageLinks& links) : links_(links) {}

    // Bytes times weight that all links can have carried by `time`, which is in picoseconds.
    double carried(double time) {
        double total = 0;
        for (std::size_t link = 0; link < links_.rate.size(); ++link)
            total += links_.rate[link] * 1e-12 * weight(link, time);
        return total;
    }

  private:
    // The integral of what the heaviest message weighs at each moment of the link.
    double weight(std::size_t link, double time) {
        const auto first = links_.offsets[link], last = links_.offsets[link + 1];
        marks_.assign({0, time});
        const auto mark = [&](double at) {
            if (at > 0 && at < time) marks_.push_back(at);
        };
        for (auto way = first; way < last; ++way) {
            for (auto distance : links_.known)
                mark(static_cast<double>(links_.before[way]) + static_cast<double>(distance));
            for (auto distance : links_.told)
                mark(time - static_cast<double>(links_.after[way]) - static_cast<double>(distance));
        }
        std::sort(marks_.begin(), marks_.end());
        double sum = 0;
        for (std::size_t i = 1; i < marks_.size(); ++i) {
            if (marks_[i] == marks_[i - 1]) continue;
            const double middle = (marks_[i - 1] + marks_[i]) / 2;
            double most = 0;
            for (auto way = first; way < last; ++way)
                most = std::max(most, heaviest(way, middle, time));
            sum += most * (marks_[i] - marks_[i - 1]);
        }
        return sum;
    }

    double heaviest(std::int64_t way, double moment, double time) const {
        const double since = moment - static_cast<double>(links_.before[way]);
        const double left = time - static_cast<double>(links_.after[way]) - moment;
        if (since < 0 || left < 0) return 0;
        const auto row = place(links_.known, since), column = place(links_.told, left);
        const auto table = static_cast<std::size_t>(links_.table[way]);
        return links_.weights[(table * links_.known.size() + row) * links_.told.size() + column];
    }

    // The last distance that is no longer than `within`; the first is 0.
    static std::size_t place(std::span<const ps> distances, double within) {
        const auto above = std::upper_bound(
            distances.begin() + 1, distances.end(), within,
            [](double time, ps distance) { return time < static_cast<double>(distance); });
        return static_cast<std::size_t>(above - distances.begin()) - 1;
    }

    const MessageLinks& links_;
    std::vector<double> marks_;
};

}  // namespace

ps time_for_messages(const MessageLinks& links, double needed) {
    if (needed <= 0) return 0;
    Messages messages(links);
    needed *= 1 - 1e-12;
    double low = 0, high = 1;
    for (; messages.carried(high) < needed; high *= 2)
        if (high > 4e18) return never;
    while (high - low > std::max(0.25, 1e-15 * high)) {
        const double middle = (low + high) / 2;
        (messages.carried(middle) >= needed ? high : low) = middle;
    }
    return static_cast<ps>(std::floor(low * (1 - 1e-12)));
}

}  // namespace weft
