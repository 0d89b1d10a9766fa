// Serialises a trace exactly as the protocol-buffer runtime would.
#pragma once

#include <string>

#include "traces/chakra.h"

namespace weft::chakra {

// Each appends whole frames: a length, then the message.
void write_metadata(std::string& out, const Metadata& metadata);
void write_nodes(std::string& out, const Nodes& nodes);

}  // namespace weft::chakra
