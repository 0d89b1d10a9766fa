// A small, fast generator whose sequence is the same on every machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace weft {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u) {
        if (state_ == 0) state_ = 1;
        for (int i = 0; i < 4; ++i) (*this)();
    }

    // xorshift64*
    std::uint64_t operator()() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545F4914F6CDD1Du;
    }

    // Uniform in [0, n).
    std::uint32_t below(std::uint32_t n) {
        return static_cast<std::uint32_t>(((*this)() >> 32) * n >> 32);
    }

    // Uniform in [0, 1).
    double fraction() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

    template <class T>
    void shuffle(std::vector<T>& items) {
        for (auto i = static_cast<std::uint32_t>(items.size()); i > 1; --i)
            std::swap(items[i - 1], items[below(i)]);
    }

  private:
    std::uint64_t state_;
};

}  // namespace weft
