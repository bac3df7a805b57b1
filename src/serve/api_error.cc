#include "serve/api_error.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace braid::serve {

std::string error_json(const ApiError& error) {
  const bool is_clients = error.status < 500 && error.status != 429;
  const auto type = error.status == 429 ? "rate_limit_error"
                    : is_clients        ? "invalid_request_error"
                                        : "server_error";
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const Json json = {{"error",
                      {{"message", error.what()},
                       {"type", type},
                       {"param", or_null(error.param)},
                       {"code", or_null(error.code)}}}};
  return json_line(json);
}

}  // namespace braid::serve
