// Form bodies with files: multipart/form-data, RFC 7578.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid::serve {

// One field of a form. It points into the body.
struct Part {
  std::string name;
  bool is_file = false;
  std::string file;  // the client's file name, without folders; may be empty
  std::string_view bytes;
  bool is_unchosen = false;  // a browser's empty file, named "", of a field where nobody chose one
};

// `content_type` is the header with its boundary. Throws ApiError for a malformed body, parts
// without a name, and more than 64 parts.
std::vector<Part> read_multipart(std::string_view body, const std::string& content_type);

}  // namespace braid::serve
