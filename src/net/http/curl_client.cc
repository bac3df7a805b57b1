// The client of web_client.h over libcurl.
#include <curl/curl.h>

#include <array>
#include <cstdlib>
#include <exception>

#include "base/ascii.h"
#include "net/http/web_client.h"

namespace braid::net {
namespace {

constexpr int kMostRedirects = 10;
constexpr long kConnectSeconds = 20;

// libcurl wants this once, before threads use it.
void start_libcurl() {
  static const auto started = curl_global_init(CURL_GLOBAL_DEFAULT);
  check(started == CURLE_OK, "libcurl does not start: ", curl_easy_strerror(started));
}

// A parsed address.
class Address {
 public:
  explicit Address(const std::string& url) : url_(curl_url(), curl_url_cleanup) {
    is_valid_ = curl_url_set(url_.get(), CURLUPART_URL, url.c_str(), 0) == CURLUE_OK;
  }
  bool is_web() const {
    const auto scheme = part(CURLUPART_SCHEME);
    return is_valid_ && (scheme == "http" || scheme == "https") && !part(CURLUPART_HOST).empty();
  }
  bool is_secure() const { return part(CURLUPART_SCHEME) == "https"; }
  // Relative addresses are resolved against the current one.
  Address led_to(const std::string& location) const {
    Address next(text());
    next.is_valid_ = curl_url_set(next.url_.get(), CURLUPART_URL, location.c_str(), 0) == CURLUE_OK;
    return next;
  }
  std::string text() const { return part(CURLUPART_URL); }
  std::string shown_text() const {
    const Address shown(text());
    for (const auto secret : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS})
      curl_url_set(shown.url_.get(), secret, nullptr, 0);
    return shown.text();
  }
  std::string origin() const {
    return part(CURLUPART_SCHEME) + "://" + ascii_lower_case(part(CURLUPART_HOST)) + ":" +
           part(CURLUPART_PORT, CURLU_DEFAULT_PORT);
  }
  std::string host() const {
    const auto port = part(CURLUPART_PORT);
    return part(CURLUPART_HOST) + (port.empty() ? "" : ":" + port);
  }

 private:
  std::string part(CURLUPart which, unsigned flags = 0) const {
    char* text = nullptr;
    if (curl_url_get(url_.get(), which, &text, flags) != CURLUE_OK) return "";
    const std::string copy = text;
    curl_free(text);
    return copy;
  }

  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url_;
  bool is_valid_ = false;
};

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// What happens while libcurl works on one request.
struct Exchange {
  const WebRequest& request;
  WebAnswer answer = {};
  std::exception_ptr thrown = {};  // by `receive`

  void take_header(std::string_view line) {
    if (line.starts_with("HTTP/")) {  // of the final answer, after those of proxies and 100
      const auto space = line.find(' ');
      answer.status = space == line.npos ? 0 : std::atoi(line.data() + space);
      answer.headers.clear();
      return;
    }
    const auto colon = line.find(':');
    if (colon == line.npos) return;
    auto value = line.substr(colon + 1);
    while (!value.empty() && (value.back() == '\r' || value.back() == '\n')) value.remove_suffix(1);
    answer.headers[ascii_lower_case(line.substr(0, colon))] = trimmed(value);
  }
  void take_body(std::string_view bytes) {
    const bool is_success = answer.status == 200 || answer.status == 206;
    if (request.receive && is_success) return request.receive(answer, bytes);
    if (is_redirect(answer.status)) return;
    check(answer.body.size() + bytes.size() <= request.max_body, "the answer of ", answer.host,
          " has more than ", request.max_body, " bytes");
    answer.body += bytes;
  }
};

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* exchange) {
  static_cast<Exchange*>(exchange)->take_header({data, size * count});
  return size * count;
}

// Exceptions must not pass through libcurl.
std::size_t on_body(char* data, std::size_t size, std::size_t count, void* pointer) {
  auto& exchange = *static_cast<Exchange*>(pointer);
  try {
    exchange.take_body({data, size * count});
    return size * count;
  } catch (...) {
    exchange.thrown = std::current_exception();
    return size * count + 1;  // an error for libcurl
  }
}

struct HeaderList {
  curl_slist* list = nullptr;
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl_slist_append(list, line.c_str()); }
};

std::string first_variable(std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (const char* const value = std::getenv(name); value && *value) return value;
  return "";
}

WebFailure failure_of(CURLcode code, const std::string& host, const WebRequest& request,
                      const std::string& details) {
  using Kind = WebFailure::Kind;
  const auto why = details.empty() ? std::string(curl_easy_strerror(code)) : details;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return {Kind::kPassing, text_of("cannot reach ", host, ": its address is not found")};
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return {Kind::kPassing, text_of("cannot reach ", host, ": ", why)};
    case CURLE_OPERATION_TIMEDOUT:
      if (request.deadline.count() > 0)
        return {Kind::kDeadline, text_of(host, " did not answer within ",
                                         double(request.deadline.count()) / 1000, " s")};
      return {Kind::kPassing, text_of(host, " sends nothing: ", why)};
    case CURLE_PEER_FAILED_VERIFICATION:
      return {Kind::kLasting, text_of("the certificate of ", host, " is not trusted: ", why,
                                      "; SSL_CERT_FILE names the authorities that are")};
    case CURLE_SSL_CACERT_BADFILE:
      return {Kind::kLasting, text_of("the trusted certificates cannot be read (the package ",
                                      "ca-certificates, or SSL_CERT_FILE): ", why)};
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_MANY_REDIRECTS:
      return {Kind::kLasting, text_of("cannot speak to ", host, ": ", why)};
    default:
      return {Kind::kPassing, text_of("the connection to ", host, " was cut: ", why)};
  }
}

}  // namespace

struct WebClient::Session {
  Session()
      : multi(curl_multi_init(), curl_multi_cleanup), curl(curl_easy_init(), curl_easy_cleanup) {
    check(multi && curl, "libcurl does not start");
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(curl.get(), option, value);
  }
  // REQUESTS_CA_BUNDLE is what Python's requests reads: pip, and huggingface_hub before 1.0.
  void set_trust() {
    const auto file = first_variable({"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"});
    const auto folder = first_variable({"SSL_CERT_DIR"});
    if (!file.empty()) set(CURLOPT_CAINFO, file.c_str());
    if (!folder.empty()) set(CURLOPT_CAPATH, folder.c_str());
  }
  void set_limits(const WebRequest& request) {
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, long(request.silence.count()));
    set(CURLOPT_TIMEOUT_MS, long(request.deadline.count()));
  }
  void set_method(const WebRequest& request) {
    if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
    if (request.method == "POST") {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.data());
    }
  }
  CURLcode perform(const std::stop_token& stop);
  WebAnswer ask_once(const WebRequest& request, const Address& address, const std::string& bearer);

  std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi;  // has the connections
  std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl;
};

// Does what curl_easy_perform() does, which notices a stop only once a second.
CURLcode WebClient::Session::perform(const std::stop_token& stop) {
  constexpr int kLongestWait = 1000;  // milliseconds
  const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi.get()); });
  const auto works = [](CURLMcode code) {
    check(code == CURLM_OK, "libcurl fails: ", curl_multi_strerror(code));
  };
  works(curl_multi_add_handle(multi.get(), curl.get()));
  const std::unique_ptr<CURL, std::function<void(CURL*)>> added(
      curl.get(), [this](CURL* one) { curl_multi_remove_handle(multi.get(), one); });
  for (int running = 1; running > 0;) {
    if (stop.stop_requested()) throw Cancelled("stopped");
    works(curl_multi_perform(multi.get(), &running));
    if (running > 0) works(curl_multi_poll(multi.get(), nullptr, 0, kLongestWait, nullptr));
  }
  int left = 0;
  const auto* const ended = curl_multi_info_read(multi.get(), &left);
  check(ended && ended->msg == CURLMSG_DONE, "libcurl does not tell how a request ended");
  return ended->data.result;
}

WebAnswer WebClient::Session::ask_once(const WebRequest& request, const Address& address,
                                       const std::string& bearer) {
  curl_easy_reset(curl.get());  // keeps the connections
  Exchange exchange{.request = request, .answer = {.host = address.host()}};
  HeaderList headers;
  for (const auto& line : request.headers) headers.add(line);
  if (!bearer.empty()) headers.add("authorization: Bearer " + bearer);
  if (request.offset > 0) headers.add(text_of("range: bytes=", request.offset, "-"));
  std::array<char, CURL_ERROR_SIZE> details{};
  const auto url = address.text();
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_USERAGENT, "braid/" BRAID_VERSION);
  set(CURLOPT_HTTPHEADER, headers.list);
  set(CURLOPT_ERRORBUFFER, details.data());
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &exchange);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, &exchange);
  set(CURLOPT_BUFFERSIZE, 512L << 10);
  set_limits(request);
  set_method(request);
  set_trust();
  const auto code = perform(request.stop);
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  if (code != CURLE_OK) throw failure_of(code, address.host(), request, details.data());
  return std::move(exchange.answer);
}

WebClient::WebClient() {
  start_libcurl();
  session_ = std::make_unique<Session>();
}
WebClient::WebClient(WebClient&&) noexcept = default;
WebClient::~WebClient() = default;

WebAnswer WebClient::ask(const WebRequest& request) {
  auto address = Address(request.url);
  const auto home = address.origin();
  Headers at_home;
  bool is_at_home = true;
  for (int hops = 0; hops <= kMostRedirects; ++hops) {
    auto answer = session_->ask_once(request, address, is_at_home ? request.bearer : "");
    if (is_at_home)
      for (const auto& [name, value] : answer.headers) at_home[name] = value;
    const auto location = answer.header("location");
    // Only 307 and 308 ask for the same request elsewhere.
    const bool is_followed = is_redirect(answer.status) && !location.empty() &&
                             (request.method != "POST" || answer.status >= 307);
    auto next = is_followed ? address.led_to(location) : Address(address.text());
    const bool leads_away = is_followed && next.origin() != home;
    if (!is_followed || (leads_away && request.redirects == Redirects::kStayThere)) {
      answer.at_home = std::move(at_home);
      return answer;
    }
    if (!next.is_web() || (address.is_secure() && !next.is_secure()))
      throw WebFailure(WebFailure::Kind::kLasting,
                       text_of(address.host(), " redirects to an address that is not secure"));
    is_at_home = is_at_home && !leads_away;
    address = std::move(next);
  }
  throw WebFailure(WebFailure::Kind::kLasting, text_of(address.host(), " redirects in a circle"));
}

bool has_web_client() { return true; }

std::string host_of_url(const std::string& url) { return Address(url).host(); }

std::string shown_url(const std::string& url) { return Address(url).shown_text(); }

void require_web_address(const std::string& what, const std::string& url,
                         const std::string& example) {
  const bool may_have_password = url.find('@') != url.npos;
  require(Address(url).is_web(), what, " should be an address such as ", example,
          may_have_password ? "" : text_of(", it is '", url, "'"));
}

}  // namespace braid::net
