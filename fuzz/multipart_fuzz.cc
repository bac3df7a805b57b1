// Any bytes are either a form of parts within the body, with readable fields, or refused. The first
// line is the content type.
#include <cstdlib>

#include "serve/api_error.h"
#include "serve/body/fields.h"

namespace {

void check_parts(const std::vector<braid::serve::Part>& parts, std::string_view body) {
  for (const auto& part : parts) {
    const bool lies_within = part.bytes.data() >= body.data() &&
                             part.bytes.data() + part.bytes.size() <= body.data() + body.size();
    if (!lies_within || part.file.find('/') != part.file.npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid::serve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = std::min(text.find('\n'), text.size());
  const auto body = text.substr(std::min(line + 1, text.size()));
  try {
    const auto parts = read_multipart(body, std::string(text.substr(0, line)));
    check_parts(parts, body);
    Fields fields(parts);
    (void)fields.text("prompt", 100);
    (void)fields.integer({"n"}, 1, 10);
    (void)fields.files("image");
    for (auto& one : fields.list("lora", 8)) (void)one.number({"scale"});
    fields.finish();
  } catch (const ApiError& error) {
    if (error_json(error).empty()) std::abort();
  }
  return 0;
}
