#include "net/hub/hub_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json.h"
#include "net/hub/hub_words.h"

namespace braid::net {
namespace {

constexpr int kUnauthorized = 401, kForbidden = 403, kNotFound = 404, kTooMany = 429;

bool is_success(const WebAnswer& answer) { return answer.status == 200 || answer.status == 206; }

bool may_pass(const WebAnswer& answer) {
  return answer.status == 408 || answer.status == kTooMany || answer.status >= 500;
}

bool is_hex(const std::string& text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// W/"abc" and "abc" are abc.
std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  std::erase(etag, '"');
  return etag;
}

std::string home_header(const WebAnswer& answer, const std::string& name) {
  const auto found = answer.at_home.find(name);
  return found == answer.at_home.end() ? "" : found->second;
}

// Hugging Face's hub says with RateLimit alone when it answers again.
std::optional<std::int64_t> wait_asked_for(const WebAnswer& answer) {
  const auto reset = answer.status == kTooMany ? seconds_to_reset(answer.header("ratelimit"))
                                               : std::optional<std::int64_t>();
  return reset ? reset : seconds_to_wait(answer.header("retry-after"), std::time(nullptr));
}

std::string printable(std::string text) {
  constexpr std::size_t kLongest = 200;
  text.resize(std::min(text.size(), kLongest));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c >= 0x7f; }, ' ');
  return text;
}

}  // namespace

HubReader::HubReader(const HubAccess& access, const Patience& patience, std::stop_token stop,
                     Say say)
    : access_(access), patience_(patience), stop_(std::move(stop)), say_(std::move(say)) {}

WebRequest HubReader::request_for(const std::string& path) const {
  return {.url = access_.endpoint + path,
          .bearer = access_.token,
          .silence = patience_.silence,
          .stop = stop_};
}

void HubReader::pause(std::chrono::milliseconds time) const {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (stop_.stop_requested()) throw Cancelled("stopped");
    std::this_thread::sleep_for(std::min(time, std::chrono::milliseconds(50)));
  }
}

// False once there is no more patience.
bool HubReader::wait_before_retry(int attempt, const WebAnswer* answer) {
  if (attempt >= patience_.attempts) return false;
  const auto asked = answer ? wait_asked_for(*answer) : std::nullopt;
  if (!asked) {
    pause(patience_.first_wait * (1 << std::min(attempt - 1, 5)));
    return true;
  }
  check(*asked <= patience_.longest_wait.count(), answer->host, " asks to be left alone for ",
        *asked, " s: run the same command then, it goes on from here");
  if (say_ && *asked > 0) say_(text_of(answer->host, " asks to wait for ", *asked, " s"));
  pause(std::chrono::seconds(*asked));
  return true;
}

WebAnswer HubReader::ask_patiently(const std::function<WebRequest()>& request,
                                   const std::string& what) {
  for (int attempt = 1;; ++attempt) {
    const auto received = received_;
    std::string failure;
    try {
      auto answer = client_.ask(request());
      if (!may_pass(answer)) return answer;
      failure = text_of(answer.host, " answers ", answer.status);
      if (!wait_before_retry(attempt, &answer)) throw Error(text_of(failure, ": ", what));
      continue;
    } catch (const WebFailure& lost) {
      if (lost.kind() != WebFailure::Kind::kPassing) throw;
      failure = lost.what();
    }
    if (received_ > received) attempt = 1;
    check(wait_before_retry(attempt, nullptr), failure, " (", what, ", tried ", patience_.attempts,
          " times); the same command goes on from here");
  }
}

// --------------------------------------------------------------------------------- refusals

void HubReader::refuse(const WebAnswer& answer, const HubName& name,
                       const std::string& path) const {
  const auto code = home_header(answer, "x-error-code");
  const auto page = shown_url(access_.endpoint + "/" + name.repository);
  const auto& repository = name.repository;
  const bool is_denied = answer.status == kUnauthorized || answer.status == kForbidden;
  if (code == "GatedRepo")
    throw InputError(
        text_of(repository, " is gated: accept its licence at ", page,
                access_.token.empty()
                    ? ", then set HF_TOKEN to a token of that account (or run 'hf auth login')"
                    : text_of(" with the account of the token in ", access_.token_source)));
  if (code == "RevisionNotFound")
    throw InputError(
        text_of(repository, " has no revision ", name.revision.empty() ? "main" : name.revision));
  if (code == "EntryNotFound")
    throw InputError(
        text_of(repository, " has no ", path,
                " any more: it changed while it was loaded; run the same command again"));
  if (code == "DisabledRepo") throw InputError(text_of(answer.host, " has disabled ", repository));
  const bool is_missing = answer.status == kNotFound || code == "RepoNotFound";
  if ((is_missing || answer.status == kUnauthorized) && access_.token.empty())
    throw InputError(
        text_of(answer.host, " has no ", repository, ", or it is private: then set HF_TOKEN"));
  if (is_missing)
    throw InputError(text_of(answer.host, " has no ", repository,
                             ", or hides it from the account of the token in ",
                             access_.token_source));
  const auto message = printable(home_header(answer, "x-error-message"));
  if (is_denied && !access_.token.empty())
    throw InputError(text_of(answer.host, " refuses the token in ", access_.token_source,
                             message.empty() ? "" : ": " + message));
  throw Error(text_of(answer.host, " answers ", answer.status, " for ", repository,
                      path.empty() ? "" : "/" + path, message.empty() ? "" : ": " + message));
}

// ---------------------------------------------------------------------------------- questions

HubListing HubReader::list(const HubName& name) {
  const auto revision = name.revision.empty() ? std::string("main") : name.revision;
  // A branch may have slashes: they are part of its name, not of the path.
  auto encoded = percent_encoded(revision);
  for (auto at = encoded.find('/'); at != encoded.npos; at = encoded.find('/', at))
    encoded.replace(at, 1, "%2F");
  const auto path = "/api/models/" + name.repository + "/revision/" + encoded;
  const auto answer = ask_patiently([&] { return request_for(path); }, name.repository);
  if (!is_success(answer)) refuse(answer, name, "");
  const auto source = text_of("the answer of ", answer.host);
  Json json;
  try {
    json = parse_json(answer.body, source);
  } catch (const InputError&) {
    throw Error(text_of(answer.host, " does not answer as a hub of models does"));
  }
  const JsonObject object(json, source);
  HubListing listing{.name = name, .commit = object.string("sha"), .paths = {}};
  check(is_hex(listing.commit, 40), source, " names the commit '", printable(listing.commit), "'");
  check(object.at("siblings").is_array(), source, " lists no files");
  for (const auto& sibling : object.at("siblings")) {
    auto file = JsonObject(sibling, source + ": 'siblings'").string("rfilename");
    require_inside(file, name.repository);
    listing.paths.push_back(std::move(file));
  }
  return listing;
}

HubFile HubReader::describe(const HubListing& listing, const std::string& path) {
  const auto& name = listing.name;
  const auto url =
      "/" + name.repository + "/resolve/" + listing.commit + "/" + percent_encoded(path);
  const auto answer = ask_patiently(
      [&] {
        auto request = request_for(url);
        request.method = "HEAD";
        request.redirects = Redirects::kStayThere;
        request.headers = {"accept-encoding: identity"};  // else the size may be another
        return request;
      },
      path);
  const bool is_elsewhere = answer.status >= 300 && answer.status < 400;
  if (!is_success(answer) && !is_elsewhere) refuse(answer, name, path);
  const auto commit = home_header(answer, "x-repo-commit");
  check(commit == listing.commit, answer.host, " answers for ", name.repository, " at ",
        commit.empty() ? "no commit" : printable(commit), " instead of ", listing.commit,
        ": it changed while it was loaded; run the same command again");
  const auto linked_size = home_header(answer, "x-linked-size");
  const auto size = linked_size.empty() ? home_header(answer, "content-length") : linked_size;
  check(!size.empty() && size.size() < 18 && size.find_first_not_of("0123456789") == size.npos,
        answer.host, " does not tell the size of ", path);
  const auto linked = plain_etag(home_header(answer, "x-linked-etag"));
  HubFile file{.path = path,
               .size = std::stoull(size),
               .etag = linked.empty() ? plain_etag(home_header(answer, "etag")) : linked};
  check(is_hex(file.etag, 64) || is_hex(file.etag, 40), answer.host, " gives no hash of ", path,
        ", by which it could be checked");
  return file;
}

void HubReader::load(const HubListing& listing, const HubFile& file, std::uint64_t offset,
                     const std::function<void(std::uint64_t)>& begin, const Take& take) {
  const auto url = "/" + listing.name.repository + "/resolve/" + listing.commit + "/" +
                   percent_encoded(file.path);
  auto at = offset;
  const auto receive = [&](const WebAnswer& head, bool& has_begun, std::string_view bytes) {
    if (!has_begun) {
      const bool is_rest = head.status == 206 &&
                           head.header("content-range").starts_with(text_of("bytes ", at, "-"));
      check(is_rest || head.status == 200, head.host, " sends another range of ", file.path,
            " than was asked for");
      if (!is_rest) at = 0;
      begin(at);
      has_begun = true;
    }
    take(bytes);
    at += bytes.size();
    received_ += bytes.size();
  };
  const auto answer = ask_patiently(
      [&] {
        auto request = request_for(url);
        request.offset = at;
        request.headers = {"accept-encoding: identity"};
        request.receive = [&, has_begun = false](const WebAnswer& head,
                                                 std::string_view bytes) mutable {
          receive(head, has_begun, bytes);
        };
        return request;
      },
      file.path);
  constexpr int kNoSuchRange = 416;
  if (answer.status == kNoSuchRange) return begin(0);  // the caller finds it incomplete
  if (!is_success(answer)) refuse(answer, listing.name, file.path);
}

}  // namespace braid::net
