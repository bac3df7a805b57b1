// The web page and the API's description.
#include "base/ascii.h"
#include "base/hexadecimal.h"
#include "serve/api/api.h"
#include "serve/page/page_files.h"

namespace braid::serve {
namespace {

// Nothing is loaded from elsewhere, no inline scripts or styles, frames only where they are
// allowed.
std::string content_policy(const std::string& frame_ancestors) {
  return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
         "img-src 'self' blob:; base-uri 'self'; form-action 'none'; frame-ancestors " +
         frame_ancestors;
}

std::string content_type(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "application/json";
}

// An entity tag of the contents, by FNV-1a (Fowler, Noll and Vo).
std::string tag_of(std::string_view contents) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : contents) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return '"' + hex_digits(hash) + '"';
}

// Compares weakly (RFC 9110, 13.1.2), as caches and proxies that compress ask: W/ does not count.
bool names_tag(std::string_view if_none_match, std::string_view tag) {
  if (trimmed(if_none_match) == "*") return true;
  for (auto rest = if_none_match;;) {
    const auto begin = rest.find('"');
    const auto end = begin == rest.npos ? begin : rest.find('"', begin + 1);
    if (end == rest.npos) return false;
    if (rest.substr(begin, end + 1 - begin) == tag) return true;
    rest.remove_prefix(end + 1);
  }
}

// The page's own addresses are relative to its base, which is the prefix also where a proxy leaves
// out the slash behind it. A description names its server by the prefix.
std::string contents_below(const PageFile& file, const std::string& prefix) {
  std::string contents(file.contents);
  const auto insert = [&](std::string_view behind, const std::string& text) {
    const auto at = contents.find(behind);
    if (at != contents.npos) contents.insert(at + behind.size(), text);
  };
  if (prefix.empty()) return contents;
  if (file.name == "index.html") insert("<head>", "\n<base href=\"" + prefix + "/\">");
  if (file.name == "openapi.json") insert("{", "\n \"servers\": [{\"url\": \"" + prefix + "\"}],");
  return contents;
}

Answer send_file(const ApiContext& context, const PageFile& file, const HttpRequest& http) {
  auto contents = contents_below(file, http.prefix);
  const auto tag = tag_of(contents);
  HttpResponse response{.content_type = content_type(file.name),
                        .headers = {{"cache-control", "no-cache"}, {"etag", tag}}};
  if (file.name.ends_with(".html"))
    response.headers.emplace_back("content-security-policy",
                                  content_policy(context.frame_ancestors));
  if (names_tag(http.header("if-none-match"), tag))
    response.status = 304;
  else
    response.body = std::move(contents);
  return {.now = std::move(response)};
}

}  // namespace

std::vector<Route> page_routes() {
  std::vector<Route> routes;
  for (const auto& file : page_files()) {
    const auto path = file.name == "index.html" ? "/" : "/" + std::string(file.name);
    routes.push_back(
        {"GET", path,
         [file](const ApiContext& context, const HttpRequest& http,
                const std::vector<std::string>&) { return send_file(context, file, http); }});
  }
  return routes;
}

}  // namespace braid::serve
