#include "runtime/rings.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <stdexcept>

namespace weft::runtime {
namespace {

constexpr std::size_t line = 64;
constexpr int least_looks = 32, most_looks = 2048;
constexpr auto look_around = std::chrono::milliseconds(20);
constexpr std::size_t most_at_once = 1 << 16;  // before the other end is told of it

// That this process may use.
int cores() {
    cpu_set_t set;
    return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

}  // namespace

struct Rings::Bell {
    alignas(line) std::atomic<std::uint32_t> rung;
    std::atomic<std::uint32_t> sleeping;

    void ring() {
        rung.fetch_add(1);
        if (sleeping.load() != 0) ::syscall(SYS_futex, &rung, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
    void sleep(std::uint32_t heard, std::chrono::nanoseconds most) {
        sleeping.store(1);
        if (rung.load() == heard) {
            const timespec time{most.count() / 1'000'000'000, most.count() % 1'000'000'000};
            ::syscall(SYS_futex, &rung, FUTEX_WAIT, heard, &time, nullptr, 0);
        }
        sleeping.store(0);
    }
};

// Counts of all bytes ever written and read; the bytes follow.
struct Counts {
    alignas(line) std::atomic<std::uint64_t> written;
    alignas(line) std::atomic<std::uint64_t> read;
    alignas(line) std::byte bytes[];
};

namespace {

// One end's view of one direction. What the other end says is never believed beyond the ring.
struct Lane {
    Counts* counts;
    std::size_t capacity;
    std::uint64_t mine = 0, theirs = 0;

    std::byte* at(std::uint64_t place) { return counts->bytes + (place & (capacity - 1)); }
    std::size_t until_wrap(std::uint64_t place) const {
        return capacity - (place & (capacity - 1));
    }
};

}  // namespace

class Ring : public Channel {
  public:
    Ring(Lane out, Lane in, Rings::Bell& other) : out_(out), in_(in), other_(other) {}

    std::size_t write(std::span<const std::byte> bytes) override {
        std::size_t sent = 0;
        while (sent < bytes.size()) {
            out_.theirs = out_.counts->read.load(std::memory_order_acquire);
            const auto used = static_cast<std::size_t>(out_.mine - out_.theirs);
            const auto n =
                std::min({bytes.size() - sent, out_.capacity - std::min(used, out_.capacity),
                          out_.until_wrap(out_.mine), most_at_once});
            if (n == 0) break;
            std::memcpy(out_.at(out_.mine), bytes.data() + sent, n);
            out_.mine += n;
            sent += n;
            out_.counts->written.store(out_.mine, std::memory_order_release);
            other_.ring();
        }
        return sent;
    }

    std::span<const std::byte> peek(std::size_t least) override {
        const std::size_t there = arrived();
        if (there < least) return {};
        const std::size_t straight = std::min({there, in_.until_wrap(in_.mine), most_at_once});
        if (straight >= least) return {in_.at(in_.mine), straight};
        // An element that goes around the end of the ring.
        for (std::size_t i = 0; i < least; ++i) bridge_[i] = *in_.at(in_.mine + i);
        return {bridge_.data(), least};
    }

    void consume(std::size_t bytes) override {
        in_.mine += bytes;
        in_.counts->read.store(in_.mine, std::memory_order_release);
        other_.ring();
    }

    std::size_t read(std::span<std::byte> into) override {
        std::size_t n = 0;
        while (n < into.size()) {
            const auto piece = peek(1);
            if (piece.empty()) break;
            const std::size_t some = std::min(piece.size(), into.size() - n);
            std::memcpy(into.data() + n, piece.data(), some);
            consume(some);
            n += some;
        }
        return n;
    }

    bool closed() const override { return false; }

  private:
    std::size_t arrived() {
        in_.theirs = in_.counts->written.load(std::memory_order_acquire);
        return std::min(static_cast<std::size_t>(in_.theirs - in_.mine), in_.capacity);
    }

    Lane out_, in_;
    Rings::Bell& other_;
    std::array<std::byte, line> bridge_;
};

namespace {

std::size_t bells_bytes(std::int32_t ranks, std::size_t bell) {
    return static_cast<std::size_t>(ranks) * bell;
}

}  // namespace

std::size_t Rings::bytes(std::int32_t ranks, std::size_t ring_bytes) {
    const auto pairs = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
    return bells_bytes(ranks, sizeof(Bell)) + pairs * (sizeof(Counts) + ring_bytes);
}

Rings::Rings(std::span<std::byte> memory, std::int32_t rank, std::int32_t ranks,
             std::size_t ring_bytes, std::vector<int> watched)
    : bell_(reinterpret_cast<Bell*>(memory.data())[rank]), watched_(std::move(watched)),
      fewest_looks_(ranks <= cores() ? most_looks : least_looks), looks_(fewest_looks_) {
    if (rank < 0 || rank >= ranks || memory.size() < bytes(ranks, ring_bytes))
        throw std::out_of_range("the shared memory is too small");
    std::byte* const rings = memory.data() + bells_bytes(ranks, sizeof(Bell));
    const auto lane = [&](std::int32_t from, std::int32_t to) {
        const auto number = static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                            static_cast<std::size_t>(to);
        return Lane{reinterpret_cast<Counts*>(rings + number * (sizeof(Counts) + ring_bytes)),
                    ring_bytes};
    };
    auto* const bells = reinterpret_cast<Bell*>(memory.data());
    for (std::int32_t peer = 0; peer < ranks; ++peer)
        channels_.push_back(
            std::make_unique<Ring>(lane(rank, peer), lane(peer, rank), bells[peer]));
}

Rings::~Rings() = default;

Channel& Rings::channel(std::int32_t peer) { return *channels_.at(static_cast<std::size_t>(peer)); }

void Rings::prepare() { heard_ = bell_.rung.load(); }

bool Rings::wait(Clock::time_point until) {
    // Looking is quicker than sleeping, if the other end has a core at the time. Where there are
    // fewer cores than ranks, that it has is believed as long as it proves right.
    for (int i = 0; i < looks_; ++i) {
        if (bell_.rung.load(std::memory_order_relaxed) != heard_) {
            looks_ = std::min(2 * looks_, most_looks);
            return false;
        }
        relax();
    }
    looks_ = std::max(looks_ / 2, fewest_looks_);
    // A bell cannot be waited for together with descriptors.
    const auto left = std::min<Clock::duration>(until - Clock::now(), look_around);
    if (left.count() > 0)
        bell_.sleep(heard_, std::chrono::duration_cast<std::chrono::nanoseconds>(left));
    if (bell_.rung.load(std::memory_order_relaxed) != heard_) return false;
    std::vector<pollfd> polled;
    for (const int descriptor : watched_) polled.push_back({descriptor, POLLIN, 0});
    return ::poll(polled.data(), polled.size(), 0) > 0;
}

}  // namespace weft::runtime
