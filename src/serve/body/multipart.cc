#include "serve/body/multipart.h"

#include <algorithm>
#include <map>

#include "base/ascii.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kMostParts = 64, kMostHeadBytes = 4096, kLongestFileName = 200;

[[noreturn]] void refuse_body(const std::string& why) {
  throw ApiError(400, "the request is not multipart/form-data: " + why, "invalid_multipart");
}

// A header value, up to the next ';': a token, or quoted, with \ before a quote.
std::string take_value(std::string_view& rest) {
  std::string value;
  if (!rest.starts_with('"')) {
    const auto end = std::min(rest.find(';'), rest.size());
    value = trimmed(rest.substr(0, end));
    rest.remove_prefix(end);
    return value;
  }
  for (rest.remove_prefix(1); !rest.empty() && rest.front() != '"'; rest.remove_prefix(1)) {
    if (rest.starts_with("\\\"") || rest.starts_with("\\\\")) rest.remove_prefix(1);
    value += rest.front();
  }
  if (rest.empty()) refuse_body("a quote is not closed");
  rest.remove_prefix(1);
  return value;
}

// `form-data; name="a"; filename="b"`: the first word under "", the others by name.
std::map<std::string, std::string> parameters_of(std::string_view header) {
  std::map<std::string, std::string> parameters;
  const auto end = std::min(header.find(';'), header.size());
  parameters[""] = ascii_lower_case(trimmed(header.substr(0, end)));
  auto rest = header.substr(end);
  while (!(rest = trimmed(rest)).empty()) {
    if (rest.front() != ';') refuse_body("a header has something after a closed quote");
    rest = trimmed(rest.substr(1));
    const auto equals = rest.find('=');
    if (equals == rest.npos) break;
    const auto name = ascii_lower_case(trimmed(rest.substr(0, equals)));
    rest = trimmed(rest.substr(equals + 1));
    parameters[name] = take_value(rest);
  }
  return parameters;
}

// Escapes that browsers write for characters that end a name (WHATWG, multipart/form-data
// encoding).
std::string unescaped(std::string text) {
  for (const auto& [escape, character] :
       {std::pair("%22", "\""), std::pair("%0D", "\r"), std::pair("%0A", "\n")})
    for (auto at = text.find(escape); at != text.npos; at = text.find(escape, at + 1))
      text.replace(at, 3, character);
  return text;
}

std::string without_folders(const std::string& path) {
  const auto slash = path.find_last_of("/\\");
  auto name = slash == path.npos ? path : path.substr(slash + 1);
  std::erase_if(name, [](unsigned char c) { return c < 32 || c == 127; });
  return name.size() <= kLongestFileName ? name : "";
}

// HTTP needs no transfer encodings of parts, and RFC 7578 (4.7) deprecates them.
void require_plain(std::string_view value) {
  const auto encoding = ascii_lower_case(value.substr(0, value.find_first_of("; ")));
  for (const auto* const plain : {"", "7bit", "8bit", "binary"})
    if (encoding == plain) return;
  refuse_body("a part is in " + encoding.substr(0, 100) + ", it should come as it is");
}

// Java's clients say ISO-8859-1 of whatever they send, which is the same for ASCII.
void require_utf8(const Part& part, std::string_view content_type) {
  const auto charset = ascii_lower_case(parameters_of(content_type)["charset"]);
  const bool is_ascii = std::ranges::all_of(part.bytes, [](unsigned char c) { return c < 128; });
  for (const auto* const known : {"", "utf-8", "utf8", "us-ascii", "ascii"})
    if (charset == known) return;
  if (charset != "iso-8859-1" || !is_ascii)
    refuse_body("'" + part.name + "' is in " + charset.substr(0, 100) + ", it should be in UTF-8");
}

// Reads the header lines of a part, and returns its content type. Some clients send a picture
// without a file name, or with filename* alone (RFC 7578 forbids that).
std::string_view read_head(std::string_view head, Part& part) {
  bool has_name = false;
  std::string_view content_type;
  while (!head.empty()) {
    const auto end = std::min(head.find("\r\n"), head.size());
    const auto line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const auto colon = line.find(':');
    if (colon == line.npos) refuse_body("a part's head has a line without a colon");
    const auto name = ascii_lower_case(trimmed(line.substr(0, colon)));
    const auto value = trimmed(line.substr(colon + 1));
    if (name == "content-transfer-encoding") require_plain(value);
    if (name == "content-type") content_type = value;
    if (name != "content-disposition") continue;
    const auto parameters = parameters_of(value);
    has_name = parameters.at("") == "form-data" && parameters.contains("name");
    if (!has_name) break;
    part.name = unescaped(parameters.at("name"));
    if (parameters.contains("filename*")) part.is_file = true;
    if (!parameters.contains("filename")) continue;
    part.is_file = true;
    part.is_unchosen = parameters.at("filename").empty();  // if it has no bytes either
    part.file = without_folders(unescaped(parameters.at("filename")));
  }
  if (!has_name) refuse_body("a part has no name");
  if (ascii_lower_case(content_type).starts_with("image/")) part.is_file = true;
  return content_type;
}

std::string boundary_of(const std::string& content_type) {
  const auto parameters = parameters_of(content_type);
  const auto it = parameters.find("boundary");
  if (parameters.at("") != "multipart/form-data" || it == parameters.end())
    refuse_body("its content type names no boundary");
  if (it->second.empty() || it->second.size() > 70)
    refuse_body("its boundary should have 1 to 70 characters");
  return it->second;
}

// The first delimiter may start the body, without a line end before it.
void take_until_first(std::string_view& body, std::string_view delimiter) {
  const bool begins = body.starts_with(delimiter.substr(2));
  const auto first = begins ? 0 : body.find(delimiter);
  if (first == body.npos) refuse_body("its boundary is not there");
  body.remove_prefix(first + delimiter.size() - (begins ? 2 : 0));
}

// Takes the text after one delimiter up to the end of the next.
Part take_part(std::string_view& body, std::string_view delimiter) {
  const auto line = body.find("\r\n");
  if (line == body.npos || !trimmed(body.substr(0, line)).empty())
    refuse_body("its last boundary is not there");
  body.remove_prefix(line);
  const auto head = body.substr(0, kMostHeadBytes).find("\r\n\r\n");
  if (head == body.npos) refuse_body("a part's head has no end, or is longer than 4096 bytes");
  const auto end = body.find(delimiter, head + 2);
  if (end == body.npos) refuse_body("its last boundary is not there");
  Part part;
  const auto content_type = read_head(head == 0 ? "" : body.substr(2, head - 2), part);
  // An empty part's only line end belongs to the delimiter.
  part.bytes = body.substr(std::min(head + 4, end), end - std::min(head + 4, end));
  body.remove_prefix(end + delimiter.size());
  part.is_unchosen = part.is_unchosen && part.bytes.empty();
  if (!part.is_file) require_utf8(part, content_type);
  return part;
}

}  // namespace

std::vector<Part> read_multipart(std::string_view body, const std::string& content_type) {
  const auto delimiter = "\r\n--" + boundary_of(content_type);
  std::vector<Part> parts;
  take_until_first(body, delimiter);
  while (!body.starts_with("--")) {
    if (parts.size() == kMostParts) refuse_body("it has more than 64 parts");
    parts.push_back(take_part(body, delimiter));
  }
  return parts;
}

}  // namespace braid::serve
