// Static files for browsers and tools, embedded when the server is built (embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace braid::serve {

struct PageFile {
  std::string_view name;  // "index.html"
  std::string_view contents;
};
std::span<const PageFile> page_files();

}  // namespace braid::serve
