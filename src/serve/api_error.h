// An error as told to a client, in the form of OpenAI's errors.
#pragma once

#include <stdexcept>
#include <string>

#include "base/error.h"

namespace braid::serve {

// NULs in `message` become spaces, as in other errors: what() would end at one.
struct ApiError : std::runtime_error {
  ApiError(int http_status, const std::string& message, std::string of_code = "",
           std::string of_param = "")
      : std::runtime_error(text_of(message)),
        status(http_status),
        code(std::move(of_code)),
        param(std::move(of_param)) {}

  int status;                  // HTTP status
  std::string code, param;     // "queue_full"; the offending field; may be empty
  int retry_after = 0;         // seconds; 0: not sent
  std::string allow = {};      // methods to name
  std::string challenge = {};  // of 401: how to bring the key
  bool is_last_word = false;   // trying again would end the same way: OpenAI's clients retry
};

// {"error": {"message", "type", "param", "code"}}
std::string error_json(const ApiError& error);

// 503 that may be tried again after so many seconds.
inline ApiError busy_for(int seconds, const std::string& message, const std::string& code) {
  ApiError error(503, message, code);
  error.retry_after = seconds;
  return error;
}

// Complains of a field that the client can correct.
[[noreturn]] inline void refuse(const std::string& param, const std::string& message) {
  throw ApiError(400, message, "invalid_value", param);
}

}  // namespace braid::serve
