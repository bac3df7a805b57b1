// What `braid info` prints of an adapter's file.
#pragma once

#include <filesystem>

#include "app/print/readable_json.h"

namespace braid {

OrderedJson adapter_info(const std::filesystem::path& path);

}  // namespace braid
