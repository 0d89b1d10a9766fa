#include "trace_splice.h"

#include <algorithm>
#include <utility>

#include "trace_frames.h"
#include "wire.h"

namespace weft::chakra {
namespace {

bool contains(const Rows& sets, std::int32_t set, std::int32_t rank) {
    const auto members = sets[set];
    return std::binary_search(members.begin(), members.end(), rank);
}

// Frames of the few shapes that lowering adds, in the order of fields of the protobuf runtime.
class Writer {
public:
    explicit Writer(std::string& out) : out_(out) {}

    void open(std::uint64_t id, std::string_view name, NodeType type) {
        body_.clear();
        if (id != 0) number(1, id);
        if (!name.empty()) text(2, name);
        number(3, static_cast<std::uint64_t>(type));
    }
    void waits(std::uint32_t field, const std::vector<std::uint64_t>& ids) {
        if (ids.empty()) return;
        packed_.clear();
        for (const std::uint64_t id : ids) wire::append_varint(packed_, id);
        text(field, packed_);
    }
    void attribute(std::string_view name, Base base, std::int64_t value) {
        const auto bits = static_cast<std::uint64_t>(value);
        const std::uint32_t tag = wire::tag(kind_of(base), wire::varint);
        wire::append_varint(body_, wire::tag(10, wire::bytes));
        wire::append_varint(body_, 2 + name.size() + wire::varint_size(tag) +
                                       wire::varint_size(bits));
        text(1, name);
        wire::append_varint(body_, tag);
        wire::append_varint(body_, bits);
    }
    // Sums and joins must not queue behind a rank's kernels where only one of those runs at a
    // time, and take no time of their own: readers do both for what is no kernel.
    void beside_kernels() { attribute("is_cpu_op", Base::boolean, 1); }
    void close() {
        wire::append_varint(out_, body_.size());
        out_ += body_;
    }

private:
    void number(std::uint32_t field, std::uint64_t value) {
        wire::append_varint(body_, wire::tag(field, wire::varint));
        wire::append_varint(body_, value);
    }
    void text(std::uint32_t field, std::string_view value) {
        wire::append_varint(body_, wire::tag(field, wire::bytes));
        wire::append_varint(body_, value.size());
        body_.append(value);
    }

    std::string& out_;
    std::string body_, packed_;
};

void write_step(Writer& writer, const Share::Step& step, std::uint64_t id, std::int32_t first_tag,
                const std::vector<std::uint64_t>& waits) {
    const char* name = step.type == comm_send ? "send" : step.type == comm_recv ? "recv" : "sum";
    writer.open(id, name, step.type);
    writer.waits(5, waits);
    if (step.type == comp) {
        writer.beside_kernels();
    } else {
        const Known peer = step.type == comm_send ? comm_dst : comm_src;
        const auto& [peer_name, peer_base] = known_attributes[peer];
        writer.attribute(peer_name, peer_base, step.peer);
        writer.attribute("comm_size", Base::int64, step.size);
        writer.attribute("comm_tag", Base::int32, first_tag + step.tag);
    }
    writer.close();
}

}  // namespace

Share share_of(const Nodes& nodes, const Transfers& table, const Ends& ends, std::int32_t rank) {
    Share share;
    share.steps.reserve(nodes.size());
    std::vector<std::pair<std::int32_t, std::int32_t>> written;  // chunk, node
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto type = static_cast<NodeType>(nodes.type[i]);
        const auto first = nodes.data.offsets[i], last = nodes.data.offsets[i + 1];
        if (type == comp && first == last) continue;  // the only node of a rank without rows
        const std::size_t message = type == comp ? nodes.data.ids[first] : i;
        const auto row = static_cast<std::size_t>(nodes.known[comm_tag][message]);
        const std::int32_t chunk = table.chunk[row];
        // The first node that writes a chunk adds to what the rank had, if it had any.
        const bool first_sum = type == comp && last - first == 1;
        const bool own = (type == comm_send && first == last) ||
                         (first_sum && contains(ends.sets, ends.pre[chunk], rank));
        share.steps.push_back({type, table.src[row] == rank ? table.dst[row] : table.src[row],
                               ends.tag[row], table.chunk_bytes[chunk], own});
        for (auto k = first; k < last; ++k)
            share.waits.push_back(static_cast<std::int32_t>(nodes.data.ids[k]));
        share.offsets.push_back(static_cast<std::int64_t>(share.waits.size()));
        if (type != comm_send) written.emplace_back(chunk, static_cast<std::int32_t>(i));
    }
    std::sort(written.begin(), written.end());
    for (std::size_t i = 0; i < written.size(); ++i) {
        const std::int32_t chunk = written[i].first;
        if (i + 1 < written.size() && written[i + 1].first == chunk) continue;
        if (contains(ends.sets, ends.post[chunk], rank) ||
            (ends.reduce[chunk] && contains(ends.sets, ends.pre[chunk], rank)))
            share.last.push_back(written[i].second);
    }
    std::sort(share.last.begin(), share.last.end());
    return share;
}

void write_share(std::string& out, const Share& share, std::uint64_t first_id,
                 std::int32_t first_tag, std::string_view frame) {
    Writer writer(out);
    const bool member = !frame.empty();
    const Replaced replaced = member ? read_replaced(frame) : Replaced{};
    const std::uint64_t start = first_id, first = first_id + (member ? 1 : 0);
    if (member) {
        writer.open(start, "start", comp);
        writer.waits(4, replaced.ctrl);
        writer.waits(5, replaced.data);
        writer.beside_kernels();
        writer.close();
    }
    std::vector<std::uint64_t> waits;
    for (std::size_t i = 0; i < share.steps.size(); ++i) {
        waits.clear();
        if (share.steps[i].own) waits.push_back(start);
        for (auto k = share.offsets[i]; k < share.offsets[i + 1]; ++k)
            waits.push_back(first + static_cast<std::uint64_t>(share.waits[k]));
        write_step(writer, share.steps[i], first + i, first_tag, waits);
    }
    if (!member) return;
    waits.assign(1, start);
    for (const std::int32_t node : share.last)
        waits.push_back(first + static_cast<std::uint64_t>(node));
    writer.open(replaced.id, replaced.name, comp);
    writer.waits(5, waits);
    writer.beside_kernels();
    writer.close();
}

}  // namespace weft::chakra
