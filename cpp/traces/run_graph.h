// The nodes of all ranks' traces, packed for a run: what each does, who waits for it, and which
// messages can meet. Some 40 bytes per node, since whole training steps have millions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/chakra.h"

namespace weft {

// Whose rules a run follows: Weft's, or those of ASTRA-sim for the files of a collective algorithm
// (custom) or of a workload (plain).
enum class RunRules : std::uint8_t { weft, custom, plain };

// `host` is a COMP on the rank's CPU.
enum class RunKind : std::uint8_t { comp, send, recv, host, collective };

inline constexpr std::uint32_t no_node = std::numeric_limits<std::uint32_t>::max();

// One rank's nodes, in ascending order of id. With the rules `custom` children and roots are in the
// order in which ASTRA-sim goes through them, and nothing is waited for twice.
struct RankNodes {
    std::vector<std::uint64_t> id;  // empty: 0, 1, 2, ...
    std::vector<RunKind> kind;
    std::vector<std::uint32_t> waits;              // for how many nodes; one twice counts twice
    std::vector<std::uint32_t> offsets, children;  // the nodes that wait for each
    std::vector<std::uint32_t> roots;              // those that wait for none
    std::vector<std::int64_t> amount;              // microseconds of a COMP, bytes of a message
    std::vector<std::int32_t> peer;
    std::vector<std::uint32_t> tag;
    std::optional<std::uint64_t> collective;  // a COMM_COLL, if there is one

    std::size_t size() const { return kind.size(); }
};

// Throws std::invalid_argument that names the node: one that the rules cannot run, a message that
// makes no sense among so many ranks, an id used twice, a dependency that dangles, a cycle.
RankNodes pack_rank(const chakra::Nodes& nodes, std::int32_t rank, std::int32_t ranks,
                    RunRules rules);

// Messages meet if they agree in all of these.
struct Channel {
    std::int64_t bytes;
    std::int32_t src, dst;
    std::uint32_t tag;

    bool operator==(const Channel&) const = default;
};

// Nodes are numbered one rank after the other.
class RunGraph {
  public:
    // Takes the nodes out of the parts, one after the other: both together would be too much.
    explicit RunGraph(std::span<RankNodes*> parts);

    std::int32_t ranks() const { return static_cast<std::int32_t>(ids_.size()); }
    std::uint32_t size() const { return static_cast<std::uint32_t>(kind.size()); }
    std::int32_t rank_of(std::uint32_t node) const;
    std::uint64_t id_of(std::uint32_t node) const { return id_on(rank_of(node), node); }
    std::uint64_t id_on(std::int32_t rank, std::uint32_t node) const;
    std::vector<std::uint64_t> ids() const;         // of all nodes
    std::string name_of(std::uint32_t node) const;  // for messages
    std::span<const std::uint32_t> children_of(std::uint32_t node) const {
        return {children_.data() + offsets_[node], children_.data() + offsets_[node + 1]};
    }
    std::span<const std::uint32_t> roots_of(std::int32_t rank) const { return roots_[rank]; }
    const Channel& channel_of(std::uint32_t node) const { return channels[detail[node]]; }

    std::vector<std::uint32_t> firsts;  // of each rank; at the end how many nodes there are
    std::vector<RunKind> kind;
    std::vector<std::uint32_t> waits;
    std::vector<std::int64_t> detail;  // microseconds of a COMP, channel of a message
    std::vector<Channel> channels;

  private:
    std::size_t reserve(std::span<RankNodes* const> parts);
    void append(std::int32_t rank, RankNodes&& part);

    std::vector<std::vector<std::uint64_t>> ids_;
    std::vector<std::vector<std::uint32_t>> roots_;
    std::vector<std::uint32_t> offsets_, children_;
};

}  // namespace weft
