#include "planners/repair/repair.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace weft {
namespace {

class Completing {
  public:
    Completing(const Network& network, RowsView missing, std::span<const ps> hold,
               std::span<const ps> duration)
        : net_(network), missing_(missing), hold_(hold), duration_(duration),
          arrives_(missing.items.size(), never), next_(missing.items.size() + 1),
          cursor_(network.links()), idle_(network.links()) {
        for (std::size_t i = 0; i < next_.size(); ++i) next_[i] = static_cast<std::int64_t>(i);
    }

    Completion run(ps begin, Progress& progress) {
        progress.begin(static_cast<std::int64_t>(missing_.items.size()));
        for (std::int32_t npu = 0; npu < net_.npus; ++npu) begin_at(npu, begin);
        while (!events_.empty()) {
            if (progress.cancelled) throw Cancelled();
            const auto [now, kind, number] = events_.top();
            events_.pop();
            if (kind == arrival) {
                ++progress.done;
                arrived(number, now);
            } else {
                send(static_cast<std::int32_t>(number), now);
            }
        }
        return std::move(result_);
    }

  private:
    enum Kind { arrival, link_free };  // what arrives at a time can be sent on at that time
    using Event = std::tuple<ps, Kind, std::int64_t>;

    std::int64_t first(std::int32_t npu) const { return missing_.offsets[npu]; }
    std::int64_t end(std::int32_t npu) const { return missing_.offsets[npu + 1]; }

    // The links into an NPU begin at different places of its list, so as not to meet at once.
    void begin_at(std::int32_t npu, ps begin) {
        const auto count = end(npu) - first(npu);
        if (count == 0) return;
        const auto links = net_.in[npu];
        for (std::size_t i = 0; i < links.size(); ++i) {
            cursor_[links[i]] = first(npu) + count * static_cast<std::int64_t>(i) /
                                                 static_cast<std::int64_t>(links.size());
            events_.push({begin, link_free, links[i]});
        }
    }

    // The entry of a chunk in an NPU's list; none if it has the chunk from the beginning.
    std::int64_t find(std::int32_t npu, std::int32_t chunk) const {
        const auto from = missing_.items.begin() + first(npu);
        const auto to = missing_.items.begin() + end(npu);
        const auto place = std::lower_bound(from, to, chunk);
        return place != to && *place == chunk ? place - missing_.items.begin() : -1;
    }

    // The first entry from here on that nobody brings yet.
    std::int64_t unclaimed(std::int64_t entry) {
        while (next_[entry] != entry) entry = next_[entry] = next_[next_[entry]];
        return entry;
    }

    std::int64_t choice(std::int32_t src, std::int64_t from, std::int64_t to, ps now) {
        for (auto entry = unclaimed(from); entry < to; entry = unclaimed(entry + 1)) {
            const auto there = find(src, missing_.items[entry]);
            if (there < 0 || arrives_[there] <= now) return entry;
        }
        return -1;
    }

    void send(std::int32_t link, ps now) {
        const auto src = net_.src[link], dst = net_.dst[link];
        auto entry = choice(src, cursor_[link], end(dst), now);
        if (entry < 0) entry = choice(src, first(dst), cursor_[link], now);
        idle_[link] = entry < 0;
        if (entry < 0) return;
        cursor_[link] = entry;
        next_[entry] = entry + 1;
        arrives_[entry] = now + duration_[link];
        result_.chunk.push_back(missing_.items[entry]);
        result_.link.push_back(link);
        result_.start.push_back(now);
        events_.push({now + hold_[link], link_free, link});
        events_.push({arrives_[entry], arrival, entry});
    }

    // Links that had nothing to bring may bring this.
    void arrived(std::int64_t entry, ps now) {
        const auto npu = static_cast<std::int32_t>(
            std::upper_bound(missing_.offsets.begin(), missing_.offsets.end(), entry) -
            missing_.offsets.begin() - 1);
        for (auto link : net_.out[npu]) {
            if (!idle_[link]) continue;
            const auto wanted = find(net_.dst[link], missing_.items[entry]);
            if (wanted < 0 || arrives_[wanted] != never) continue;
            idle_[link] = false;
            cursor_[link] = wanted;
            events_.push({now, link_free, link});
        }
    }

    const Network& net_;
    const RowsView missing_;
    const std::span<const ps> hold_, duration_;
    std::vector<ps> arrives_;           // of each entry; `never` while nobody brings it
    std::vector<std::int64_t> next_;    // from an entry that somebody brings to those after it
    std::vector<std::int64_t> cursor_;  // where each link looks next
    std::vector<bool> idle_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    Completion result_;
};

}  // namespace

Completion complete(const Network& network, RowsView missing, std::span<const ps> hold,
                    std::span<const ps> duration, ps begin, Progress& progress) {
    return Completing(network, missing, hold, duration).run(begin, progress);
}

}  // namespace weft
