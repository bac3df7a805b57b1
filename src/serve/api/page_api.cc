// The web page and the API's description.
#include <cstdio>

#include "base/error.h"
#include "serve/api/api.h"
#include "serve/page/page_files.h"

namespace braid::serve {
namespace {

// Nothing is loaded from elsewhere, no inline scripts or styles, no framing.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "\"%016llx\"", static_cast<unsigned long long>(hash));
  return text.data();
}

Answer send_file(const PageFile& file, const HttpRequest& http) {
  const auto tag = tag_of(file.contents);
  HttpResponse response{.content_type = content_type(file.name),
                        .headers = {{"cache-control", "no-cache"}, {"etag", tag}}};
  if (file.name.ends_with(".html"))
    response.headers.emplace_back("content-security-policy", kContentPolicy);
  if (http.header("if-none-match") == tag)
    response.status = 304;
  else
    response.body = file.contents;
  return {.now = std::move(response)};
}

}  // namespace

std::vector<Route> page_routes() {
  std::vector<Route> routes;
  for (const auto& file : page_files()) {
    const auto path = file.name == "index.html" ? "/" : "/" + std::string(file.name);
    routes.push_back({"GET", path,
                      [file](const ApiContext&, const HttpRequest& http,
                             const std::vector<std::string>&) { return send_file(file, http); }});
  }
  return routes;
}

}  // namespace braid::serve
