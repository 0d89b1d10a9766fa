#include "runtime/pipes.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace weft::runtime {
namespace {

// Bytes in order: added at the end, taken from the beginning.
class Store {
  public:
    explicit Store(std::size_t room) : room_(room) {}

    std::size_t add(std::span<const std::byte> more) {
        const std::size_t n = std::min(more.size(), room_ - size());
        if (n == 0) return 0;
        if (bytes_.empty()) bytes_.resize(room_);
        if (end_ + n > room_) {
            std::memmove(bytes_.data(), bytes_.data() + begin_, size());
            end_ -= begin_;
            begin_ = 0;
        }
        std::memcpy(bytes_.data() + end_, more.data(), n);
        end_ += n;
        return n;
    }
    std::span<const std::byte> held() const { return {bytes_.data() + begin_, size()}; }
    void drop(std::size_t n) {
        begin_ += n;
        if (begin_ == end_) begin_ = end_ = 0;
    }
    std::size_t move_to(std::span<std::byte> into) {
        const std::size_t n = std::min(into.size(), size());
        if (n > 0) std::memcpy(into.data(), bytes_.data() + begin_, n);
        drop(n);
        return n;
    }

  private:
    std::size_t size() const { return end_ - begin_; }

    std::size_t room_;
    std::vector<std::byte> bytes_;
    std::size_t begin_ = 0, end_ = 0;
};

}  // namespace

class Pipe : public Channel {
  public:
    explicit Pipe(std::size_t room) : out(room), in(room) {}

    std::size_t write(std::span<const std::byte> bytes) override { return out.add(bytes); }
    std::span<const std::byte> peek(std::size_t least) override {
        const auto held = in.held();
        return held.size() < least ? std::span<const std::byte>{} : held;
    }
    void consume(std::size_t bytes) override { in.drop(bytes); }
    std::size_t read(std::span<std::byte> into) override { return in.move_to(into); }
    bool closed() const override { return false; }

    Store out, in;
};

Pipes::Pipes(std::int32_t ranks, std::size_t room) {
    for (std::int32_t i = 0; i < ranks; ++i) pipes_.push_back(std::make_unique<Pipe>(room));
}

Pipes::~Pipes() = default;

Pipe& Pipes::pipe(std::int32_t peer) { return *pipes_.at(static_cast<std::size_t>(peer)); }

Channel& Pipes::channel(std::int32_t peer) { return pipe(peer); }

std::size_t Pipes::take(std::int32_t peer, std::span<std::byte> into) {
    return pipe(peer).out.move_to(into);
}

std::size_t Pipes::put(std::int32_t peer, std::span<const std::byte> bytes) {
    return pipe(peer).in.add(bytes);
}

}  // namespace weft::runtime
