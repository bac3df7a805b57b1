// One question to a chat server with OpenAI's protocol: llama.cpp, vLLM, SGLang.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "base/json.h"
#include "net/enhancer/enhancer_failure.h"
#include "net/http/web_client.h"

namespace braid::net {

struct ChatServer {
  std::string url = {};                         // "http://127.0.0.1:8080", also with /v1 behind it
  std::string model = {};                       // empty: the first that the server lists
  std::string key = {};                         // a secret, sent to the origin of `url` alone
  std::chrono::milliseconds deadline{300'000};  // for all that one question takes
};

// Throws InputError naming `what` unless it is a web address of a server, and returns it without
// what every server has behind it: "/v1", "/v1/chat/completions".
std::string chat_address(const std::string& what, const std::string& url);

// Its deadline begins with it. Redirects to another origin are refused, so that neither the key nor
// a prompt goes there.
class Chat {
 public:
  Chat(const ChatServer& server, std::stop_token stop);

  // Each throws EnhancerFailure, and Cancelled.
  std::string model();                       // the server's, or the first that it lists
  std::string answer(const Json& question);  // the text of a completed answer

  std::string host() const { return host_of_url(server_.url); }

 private:
  WebAnswer ask(WebRequest request);
  std::chrono::milliseconds left() const;
  [[noreturn]] void fail(const WebFailure& lost) const;
  void require_success(const WebAnswer& answer) const;
  Json json_of(const WebAnswer& answer) const;

  const ChatServer& server_;
  const std::stop_token stop_;
  const std::chrono::steady_clock::time_point until_;
  WebClient client_;
};

}  // namespace braid::net
