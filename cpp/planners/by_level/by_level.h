// Collectives composed by level: when each kind of message starts, if all NPUs do the same.
//
// NPUs sit on a grid, and a part of a buffer (a lane) is summed along one level after the other. A
// move stands for the messages that all NPUs send at once, each to the NPU so many places on: what
// one of them does, all do. So a schedule costs as much as one NPU's part in it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/cost.h"
#include "base/progress.h"

namespace weft {

// What moves occupy: for each type of move some resources, and how long it takes.
//
// Who shares a resource takes turns, each of which comes a little later. After a move, another with
// the same turns may begin sooner than one with others.
struct MoveTypes {
    std::vector<ps> duration;
    std::vector<std::int64_t> offsets;  // by type, into those below
    std::vector<std::int32_t> resource;
    std::vector<ps> begin;            // after the start of the move
    std::vector<ps> same, other;      // when the next may begin: with the same turns, with others
    std::vector<std::int32_t> turns;  // equal where turns are the same
};

// Steps in the order in which sums go along levels, and copies back along those scattered.
//
// Moves are numbered step by step: first those of the sums, then those of the copies, whose steps
// come in the opposite order. Within a step: by the distance along the level from 1 on, then by
// where the share belongs along the levels scattered later (the next one varying fastest), then by
// piece. A share at distance d belongs to the NPU d places on; its copy comes back from there.
//
// In an exchange messages go along one level after the other. There a step's moves come by
// distance, then by how far the message goes along all other levels (the first varying fastest),
// then by piece.
struct Lane {
    std::vector<std::int32_t> size;           // by step: NPUs along the level
    std::vector<std::uint8_t> scatter, ring;  // by step; rings are scattered
    std::vector<std::int32_t> first;          // by step: where distance 1 stands in the next two
    std::vector<std::int32_t> there, back;    // types of moves to the NPU at a distance, and back
    std::int32_t pieces;
    bool sums, copies, exchange;
    MoveTypes types;
};

struct Composition {
    std::vector<ps> ready, start;  // by move, lane after lane: what it sends is there; it starts
    ps time;                       // when the last has arrived
};

// Which of the moves that wait goes first.
enum class Rule : std::int32_t {
    far,   // the one that has the longest way still to go
    deep,  // sums before copies, those of the last steps first; copies as above
};

// Whenever resources are free, one of the moves that wait for them starts.
Composition compose(const std::vector<Lane>& lanes, std::int32_t resources, Rule rule,
                    Progress& progress);

}  // namespace weft
