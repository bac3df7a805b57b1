#include "net/enhancer/chat.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/utf8.h"

namespace braid::net {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = EnhancerFailure::Kind;

constexpr std::uint64_t kMostAnswerBytes = std::uint64_t(8) << 20;  // with all thoughts
constexpr std::size_t kMostWords = 300;                             // bytes of a server's own words

// A server's words on one line: they are printed, logged and sent to clients.
std::string shown(std::string_view words) {
  std::string line;
  for (std::size_t at = 0; at < words.size() && line.size() < kMostWords;) {
    const auto [code, size] = decode_utf8(words, at);
    if (code < ' ' || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029)
      line += ' ';
    else
      append_utf8(line, code);
    at += size;
  }
  return line.size() < kMostWords ? line : line + "...";
}

const Json* member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto it = json.find(name);
  return it == json.end() ? nullptr : &*it;
}

std::string text_in(const Json* json) {
  return json && json->is_string() ? json->get<std::string>() : "";
}

// {"error": {"message": ...}}, {"error": ...}, {"message": ...}, {"detail": ...}
std::string words_of_error(const std::string& body) {
  const auto json = Json::parse(body, nullptr, false);
  const auto* const error = member(json, "error");
  for (const auto& words : {text_in(error ? member(*error, "message") : nullptr), text_in(error),
                            text_in(member(json, "message")), text_in(member(json, "detail"))})
    if (!words.empty()) return ": " + shown(words);
  return "";
}

// A list of parts, as some servers have it, or text.
std::string content_of(const Json& message) {
  const auto* const content = member(message, "content");
  if (!content || !content->is_array()) return text_in(content);
  std::string text;
  for (const auto& part : *content) text += text_in(member(part, "text"));
  return text;
}

std::string seconds_text(std::chrono::milliseconds time) {
  return text_of(double(time.count()) / 1000, " s");
}

}  // namespace

std::string chat_address(const std::string& what, const std::string& url) {
  require_web_address(what, url, "http://127.0.0.1:8080/v1");
  auto address = url;
  const auto drop = [&](std::string_view end) {
    while (address.ends_with('/')) address.pop_back();
    if (address.ends_with(end)) address.resize(address.size() - end.size());
  };
  drop("/chat/completions");
  drop("/v1");
  drop("");
  require(address.find_first_of("?#") == address.npos, what,
          " should be a server's address, without parameters behind it");
  return address;
}

Chat::Chat(const ChatServer& server, std::stop_token stop)
    : server_(server), stop_(std::move(stop)), until_(Clock::now() + server.deadline) {}

std::chrono::milliseconds Chat::left() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(until_ - Clock::now());
}

// A deadline is libcurl's, too, while it connects: a host that drops what it gets is gone, not
// slow.
void Chat::fail(const WebFailure& lost) const {
  if (lost.kind() != WebFailure::Kind::kDeadline) throw EnhancerFailure(Kind::kGone, lost.what());
  constexpr auto kNearlyOver = std::chrono::milliseconds(50);
  if (left() > kNearlyOver)
    throw EnhancerFailure(Kind::kGone, text_of("cannot reach ", host(), ": it does not respond"));
  throw EnhancerFailure(Kind::kLate,
                        text_of(host(), " did not answer within ", seconds_text(server_.deadline)));
}

WebAnswer Chat::ask(WebRequest request) {
  request.bearer = server_.key;
  request.redirects = Redirects::kStayThere;
  request.max_body = kMostAnswerBytes;
  request.deadline = std::max(left(), std::chrono::milliseconds(1));
  // A server is silent for as long as it thinks.
  request.silence =
      std::chrono::duration_cast<std::chrono::seconds>(server_.deadline) + std::chrono::seconds(2);
  request.stop = stop_;
  try {
    auto answer = client_.ask(request);
    require_success(answer);
    return answer;
  } catch (const WebFailure& lost) {
    fail(lost);
  } catch (const Cancelled&) {
    throw;
  } catch (const EnhancerFailure&) {
    throw;
  } catch (const Error& other) {  // more than kMostAnswerBytes
    throw EnhancerFailure(Kind::kNonsense, other.what());
  }
}

void Chat::require_success(const WebAnswer& answer) const {
  const int status = answer.status;
  if (status == 200) return;
  const auto kind = status == 429 || status >= 500 ? Kind::kBusy : Kind::kRefused;
  const auto refuse = [&](const auto&... words) {
    throw EnhancerFailure(kind, text_of(host(), words...));
  };
  const auto words = words_of_error(answer.body);
  if (status >= 300 && status < 400)
    refuse(" redirects to another address, which is not followed: ",
           shown(answer.header("location")));
  if (status == 401 || status == 403)
    refuse(server_.key.empty() ? " asks for a key (" : " refuses the key (", status, ")", words);
  if (status == 404) refuse(" has no chat completions, or no such model (404)", words);
  if (status == 429) {
    const auto wait = shown(answer.header("retry-after"));
    refuse(" is busy (429)", words, wait.empty() ? "" : "; it asks to wait " + wait + " s");
  }
  refuse(status >= 500 ? " fails (" : " refuses the question (", status, ")", words);
}

Json Chat::json_of(const WebAnswer& answer) const {
  try {
    return parse_json(answer.body, "its answer");
  } catch (const InputError&) {
    throw EnhancerFailure(Kind::kNonsense, host() + " does not answer with JSON: " +
                                               shown(answer.body.substr(0, 80)));
  }
}

std::string Chat::model() {
  if (!server_.model.empty()) return server_.model;
  const auto json = json_of(ask({.url = server_.url + "/v1/models"}));
  const auto* const models = member(json, "data");
  const auto name = models && models->is_array() && !models->empty()
                        ? text_in(member(models->front(), "id"))
                        : "";
  if (name.empty()) throw EnhancerFailure(Kind::kNonsense, host() + " lists no model");
  return name;
}

std::string Chat::answer(const Json& question) {
  const auto answer = json_of(
      ask({.url = server_.url + "/v1/chat/completions",
           .method = "POST",
           // libcurl would wait a second for leave to send long bodies, which few servers give.
           .headers = {"content-type: application/json", "accept: application/json", "expect:"},
           .body = json_line(question)}));
  const auto* const choices = member(answer, "choices");
  const bool has_choice = choices && choices->is_array() && !choices->empty();
  const auto* const message = has_choice ? member(choices->front(), "message") : nullptr;
  if (!message) throw EnhancerFailure(Kind::kNonsense, host() + " answers without a message");
  if (const auto refusal = text_in(member(*message, "refusal")); !refusal.empty())
    throw EnhancerFailure(Kind::kRefused, host() + " refuses: " + shown(refusal));
  const auto why = text_in(member(choices->front(), "finish_reason"));
  if (why == "length")
    throw EnhancerFailure(Kind::kNonsense, text_of("the answer of ", host(),
                                                   " is cut off: it reached its limit of tokens"));
  if (why == "content_filter")
    throw EnhancerFailure(Kind::kRefused, host() + " filters the answer out");
  return content_of(*message);
}

}  // namespace braid::net
