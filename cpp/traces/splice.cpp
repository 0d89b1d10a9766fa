#include "traces/splice.h"

#include <algorithm>
#include <utility>

#include "traces/frames.h"
#include "traces/wire.h"

namespace weft::chakra {
namespace {

bool contains(RowsView sets, std::int32_t set, std::int32_t rank) {
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
        wire::append_varint(body_,
                            2 + name.size() + wire::varint_size(tag) + wire::varint_size(bits));
        text(1, name);
        wire::append_varint(body_, tag);
        wire::append_varint(body_, bits);
    }
    // Said, since older readers want to know of every COMP. On the CPU it would not queue behind a
    // rank's kernels, but ASTRA-sim's statistics throw at such nodes.
    void on_npu() { attribute("is_cpu_op", Base::boolean, 0); }
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

const char* name_of(const Share::Step& step) {
    if (step.type == comm_send) return "send";
    if (step.type == comm_recv) return "recv";
    return step.reduce ? "sum" : "copy";
}

void write_step(Writer& writer, const Share::Step& step, std::uint64_t id, std::int32_t first_tag,
                const std::vector<std::uint64_t>& holds, const std::vector<std::uint64_t>& waits) {
    writer.open(id, name_of(step), step.type);
    writer.waits(4, holds);
    writer.waits(5, waits);
    if (step.type == comp) {
        writer.on_npu();
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

Share share_of(Nodes nodes, const Transfers& table, const Chunks& chunks,
               std::span<const std::int32_t> tag, std::int32_t rank) {
    Share share;
    share.steps.reserve(nodes.size());
    std::vector<std::pair<std::int32_t, std::int32_t>> written;  // chunk, node
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto type = static_cast<NodeType>(nodes.type[i]);
        const auto first = nodes.data.offsets[i], last = nodes.data.offsets[i + 1];
        const bool tagged = nodes.present[i] >> comm_tag & 1;
        if (!tagged && first == last) return {};  // the only node of a rank without rows
        const std::size_t message = tagged ? i : nodes.data.ids[first];  // a sum follows its RECV
        const std::int64_t row = nodes.known[comm_tag][message];
        const std::int32_t chunk = table.chunk[row];
        const bool home = table.writes(row) == chunk;
        // What nothing has written before is what the rank had, if it had any.
        bool own = type == comm_send && first == last;
        if (type == comp && tagged)
            own = last - first < 1 + (table.reduce[row] && table.reads(row) != table.writes(row));
        else if (type == comp)
            own = last - first == 1 && home && contains(chunks.sets, chunks.pre[chunk], rank);
        share.steps.push_back({type, table.src[row] == rank ? table.dst[row] : table.src[row],
                               tag[row], chunks.bytes[chunk], table.reduce[row] != 0, own});
        if (type != comm_send && home) written.emplace_back(chunk, static_cast<std::int32_t>(i));
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
    Writer writer(out);
    const bool member = !frame.empty();
    const Replaced replaced = member ? read_replaced(frame) : Replaced{};
    const std::uint64_t start = first_id, first = first_id + (member ? 1 : 0);
    if (member) {
        writer.open(start, "start", comp);
        writer.waits(4, replaced.ctrl);
        writer.waits(5, replaced.data);
        writer.on_npu();
        writer.close();
    }
    std::vector<std::uint64_t> holds, waits;
    for (std::size_t i = 0; i < share.steps.size(); ++i) {
        holds.clear();
        waits.clear();
        if (share.steps[i].own) waits.push_back(start);
        for (auto k = share.data.offsets[i]; k < share.data.offsets[i + 1]; ++k)
            waits.push_back(first + share.data.ids[k]);
        for (auto k = share.ctrl.offsets[i]; k < share.ctrl.offsets[i + 1]; ++k)
            holds.push_back(first + share.ctrl.ids[k]);
        write_step(writer, share.steps[i], first + i, first_tag, holds, waits);
    }
    if (!member) return;
    waits.assign(1, start);
    for (const std::int32_t node : share.last)
        waits.push_back(first + static_cast<std::uint64_t>(node));
    writer.open(replaced.id, replaced.name, comp);
    writer.waits(5, waits);
    writer.on_npu();
    writer.close();
}

}  // namespace weft::chakra
