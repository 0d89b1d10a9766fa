#include "traces/frames.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "traces/chakra_graph.h"
#include "traces/chakra_read.h"

namespace weft::chakra {
namespace {

using wire::Reader;

constexpr std::string_view group_setup = "process_group:init";  // in the name of the node

// An integer attribute: there, not there, or there but no integer of 63 bits.
struct Number {
    std::optional<std::int64_t> value;
    bool wrong = false;

    void read(const Attribute& attribute) {
        value = integer_of(attribute);
        wrong = !value;
    }
};

class FrameReader {
  public:
    explicit FrameReader(std::string_view file) : file_(file) {}

    Frames read() {
        Reader reader(file_);
        if (reader.done()) reader.fail("the file is empty; expected GlobalMetadata");
        for (Reader metadata = next_frame(reader); !metadata.done();) metadata.skip(metadata.tag());
        while (!reader.done()) {
            const std::size_t begin = reader.offset();
            read_node(next_frame(reader));
            if (nodes_.type.back() == comm_coll) add_collective(begin, reader.offset());
        }
        finish();
        return std::move(frames_);
    }

  private:
    void read_node(Reader reader) {
        std::string_view values;
        kind_ = size_ = tag_ = {};
        group_.kind = 0;
        const auto [id, start, duration, type, name] =
            chakra::read_node(reader, nodes_, [&](std::uint32_t tag, Reader& rest) {
                if (tag == wire::tag(8, wire::bytes))
                    values = read_values(rest.message());
                else if (tag == wire::tag(10, wire::bytes))
                    read_known(rest.message());
                else
                    rest.skip(tag);
            });
        nodes_.id.push_back(id);
        nodes_.type.push_back(type);
        if (name.find(group_setup) != name.npos) frames_.group_inputs.emplace_back(values);
        if ((type == comm_send || type == comm_recv) && tag_.value)
            frames_.tags.push_back(*tag_.value);
    }

    // The first field of an IOInfo.
    static std::string_view read_values(Reader reader) {
        std::string_view values;
        while (!reader.done()) {
            const std::uint32_t tag = reader.tag();
            if (tag == wire::tag(1, wire::bytes))
                values = reader.text();
            else
                reader.skip(tag);
        }
        return values;
    }

    void read_known(Reader reader) {
        read_attribute(reader, attribute_);
        if (attribute_.name == "comm_type")
            kind_.read(attribute_);
        else if (attribute_.name == "comm_size")
            size_.read(attribute_);
        else if (attribute_.name == "comm_tag")
            tag_.read(attribute_);
        else if (attribute_.name == "pg_name")
            std::swap(group_, attribute_);
    }

    void add_collective(std::size_t begin, std::size_t end) {
        const auto check = [&](bool right, const char* name, const char* what) {
            if (!right)
                throw std::invalid_argument(node_name(nodes_.id.back()) + ": attribute " + name +
                                            " is not " + what);
        };
        check(!kind_.wrong, "comm_type", "an integer of 63 bits");
        check(!size_.wrong, "comm_size", "an integer of 63 bits");
        check(group_.kind == 0 || group_.kind == kind_of(Base::text), "pg_name", "a text");
        frames_.id.push_back(nodes_.id.back());
        frames_.begin.push_back(static_cast<std::int64_t>(begin));
        frames_.end.push_back(static_cast<std::int64_t>(end));
        frames_.kind.push_back(kind_.value.value_or(absent));
        frames_.size.push_back(size_.value.value_or(absent));
        frames_.group.push_back(group_.kind == 0 ? std::int32_t{absent} : name_group());
    }

    std::int32_t name_group() {
        const auto next = static_cast<std::int32_t>(frames_.group_names.size());
        const auto [at, fresh] = group_numbers_.try_emplace(group_.texts[0], next);
        if (fresh) frames_.group_names.push_back(group_.texts[0]);
        return at->second;
    }

    void finish() {
        order(check_nodes(nodes_));
        auto& tags = frames_.tags;
        std::sort(tags.begin(), tags.end());
        tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
        frames_.nodes = static_cast<std::int64_t>(nodes_.size());
        for (const std::uint64_t id : nodes_.id) frames_.last_id = std::max(frames_.last_id, id);
    }

    bool ids_rise_along_dependencies() const {
        bool rise = true;
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            each_wait(nodes_, i, [&](std::uint64_t id) { rise = rise && id < nodes_.id[i]; });
        return rise;
    }

    // Puts the collectives in the order in which they are issued.
    void order(const Waiting& waiting) {
        std::vector<std::size_t> order(frames_.id.size());
        if (ids_rise_along_dependencies()) {
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::sort(order.begin(), order.end(),
                      [&](std::size_t a, std::size_t b) { return frames_.id[a] < frames_.id[b]; });
        } else {
            order = run_by_lowest_id(waiting);
        }
        const auto permute = [&](auto& column) {
            auto old = column;
            for (std::size_t i = 0; i < order.size(); ++i) column[i] = old[order[i]];
        };
        permute(frames_.id);
        permute(frames_.begin);
        permute(frames_.end);
        permute(frames_.kind);
        permute(frames_.size);
        permute(frames_.group);
    }

    std::vector<std::size_t> run_by_lowest_id(const Waiting& waiting) const {
        std::vector<std::size_t> left(nodes_.size(), 0), number(nodes_.size(), 0), found;
        for (const std::size_t node : waiting.items) ++left[node];
        for (std::size_t i = 0, next = 0; i < nodes_.size(); ++i)
            if (nodes_.type[i] == comm_coll) number[i] = next++;
        using Entry = std::pair<std::uint64_t, std::size_t>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            if (left[i] == 0) ready.emplace(nodes_.id[i], i);
        while (!ready.empty()) {
            const std::size_t node = ready.top().second;
            ready.pop();
            if (nodes_.type[node] == comm_coll) found.push_back(number[node]);
            for (const std::size_t next : waiting[node])
                if (--left[next] == 0) ready.emplace(nodes_.id[next], next);
        }
        return found;
    }

    std::string_view file_;
    Frames frames_;
    Nodes nodes_;  // only ids, types and dependencies are filled
    std::unordered_map<std::string, std::int32_t> group_numbers_;
    // Of the node at hand.
    Number kind_, size_, tag_;
    Attribute group_, attribute_;
};

}  // namespace

Frames read_frames(std::string_view file) { return FrameReader(file).read(); }

}  // namespace weft::chakra
