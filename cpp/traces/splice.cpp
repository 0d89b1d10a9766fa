#include "traces/splice.h"

#include <algorithm>
#include <utility>

#include "traces/chakra_read.h"
#include "traces/chakra_write.h"

namespace weft::chakra {
namespace {

bool contains(RowsView sets, std::int32_t set, std::int32_t rank) {
    const auto members = sets[set];
    return std::binary_search(members.begin(), members.end(), rank);
}

std::string_view name_of(const Share::Step& step) {
    if (step.type == comm_send) return "send";
    if (step.type == comm_recv) return "recv";
    return step.reduce ? "sum" : "copy";
}

void add_node(Nodes& nodes, std::uint64_t id, std::string_view name, NodeType type) {
    nodes.add(id, type);
    nodes.names.emplace_back(name);
    // Said, since older readers want to know of every COMP. On the CPU it would not queue behind a
    // rank's kernels, but ASTRA-sim's statistics throw at such nodes.
    if (type == comp) nodes.set(is_cpu_op, 0);
}

void add_waits(Waits& to, std::span<const std::uint64_t> ids, std::uint64_t first) {
    for (const std::uint64_t id : ids) to.items.push_back(first + id);
}

}  // namespace

Share share_of(Nodes nodes, const Transfers& table, const Chunks& chunks,
               std::span<const std::int32_t> tag, std::int32_t rank) {
    Share share;
    share.steps.reserve(nodes.size());
    std::vector<std::pair<std::int32_t, std::uint64_t>> written;  // chunk, node
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto type = static_cast<NodeType>(nodes.type[i]);
        const auto waits = nodes.data[i];
        const bool tagged = nodes.has(i, comm_tag);
        if (!tagged && waits.empty()) return {};  // the only node of a rank without rows
        const std::size_t message = tagged ? i : waits.front();  // a sum follows its RECV
        const std::int64_t row = nodes.known[comm_tag][message];
        const std::int32_t chunk = table.chunk[row];
        const bool home = table.writes(row) == chunk;
        // What nothing has written before is what the rank had, if it had any.
        bool own = type == comm_send && waits.empty();
        if (type == comp && tagged)
            own = waits.size() < 1u + (table.reduce[row] && table.reads(row) != table.writes(row));
        else if (type == comp)
            own = waits.size() == 1 && home && contains(chunks.sets, chunks.pre[chunk], rank);
        share.steps.push_back({type, table.src[row] == rank ? table.dst[row] : table.src[row],
                               tag[row], chunks.bytes[chunk], table.reduce[row] != 0, own});
        if (type != comm_send && home) written.emplace_back(chunk, i);
    }
    std::sort(written.begin(), written.end());
    for (std::size_t i = 0; i < written.size(); ++i) {
        const std::int32_t chunk = written[i].first;
        if (i + 1 < written.size() && written[i + 1].first == chunk) continue;
        // A copy of what the rank had, come back on its way to others, brings it nothing.
        const bool had = contains(chunks.sets, chunks.pre[chunk], rank);
        if (chunks.reduce[chunk] ? had || contains(chunks.sets, chunks.post[chunk], rank)
                                 : !had && contains(chunks.sets, chunks.post[chunk], rank))
            share.last.push_back(written[i].second);
    }
    std::sort(share.last.begin(), share.last.end());
    share.data = std::move(nodes.data);
    share.ctrl = std::move(nodes.ctrl);
    return share;
}

void write_share(std::string& out, const Share& share, std::uint64_t first_id,
                 std::int32_t first_tag, std::string_view frame) {
    const bool member = !frame.empty();
    const std::uint64_t start = first_id, first = first_id + (member ? 1 : 0);
    Nodes nodes;
    NodeHead replaced;
    if (member) {
        add_node(nodes, start, "start", comp);  // waits for what the COMM_COLL waited for
        wire::Reader reader(frame);
        replaced = read_node(next_frame(reader), nodes,
                             [](std::uint32_t tag, wire::Reader& rest) { rest.skip(tag); });
    }
    for (std::size_t i = 0; i < share.steps.size(); ++i) {
        const Share::Step& step = share.steps[i];
        add_node(nodes, first + i, name_of(step), step.type);
        if (step.own) nodes.data.items.push_back(start);
        add_waits(nodes.data, share.data[i], first);
        add_waits(nodes.ctrl, share.ctrl[i], first);
        nodes.close();
        if (step.type == comp) continue;
        nodes.set(step.type == comm_send ? comm_dst : comm_src, step.peer);
        nodes.set(comm_size, step.size);
        nodes.set(comm_tag, first_tag + step.tag);
    }
    if (member) {
        add_node(nodes, replaced.id, replaced.name, comp);
        nodes.data.items.push_back(start);
        add_waits(nodes.data, share.last, first);
        nodes.close();
    }
    write_nodes(out, nodes);
}

}  // namespace weft::chakra
