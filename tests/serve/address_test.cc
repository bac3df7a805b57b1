// Addresses as clients, browsers and proxies write them.
#include "serve/api/address.h"

#include <gmock/gmock.h>

#include "serve/api_error.h"
#include "serve/http/endpoints.h"

namespace braid::serve::address_test {

TEST(HostName, HasNeitherPortNorCaseNorFinalDot) {
  EXPECT_EQ(host_name("LocalHost:8188"), "localhost");
  EXPECT_EQ(host_name("localhost."), "localhost");
  EXPECT_EQ(host_name("localhost.:80"), "localhost");
  EXPECT_EQ(host_name("[::1]:8188"), "[::1]");
  EXPECT_EQ(host_name("[::1]"), "[::1]");
  EXPECT_EQ(host_name(""), "");
}

TEST(HostName, LeadsNowhereElse) {
  for (const auto* const host : {"localhost", "a_b.example.:8188", "127.0.0.1:80", "[::1]",
                                 "a:", "[fe80::1]:8188", "%2Frun%2Fbraid.sock"})
    EXPECT_TRUE(is_plain_host(host)) << host;
  for (const auto* const host : {"", ":80", "[::1", "[]", "[::1]x", "a/b", "a b", "user@a", "a,b",
                                 "a:80/x", "localhost:1/evil?x=", "a:8x", "a\"b", "a:1:2"})
    EXPECT_FALSE(is_plain_host(host)) << host;
}

TEST(ListeningAddress, MayHaveBracketsAndCapitals) {
  EXPECT_EQ(address_to_listen_on("[::1]"), "::1");
  EXPECT_EQ(address_to_listen_on("[::]"), "::");
  EXPECT_EQ(address_to_listen_on("LOCALHOST"), "127.0.0.1");
  EXPECT_EQ(address_to_listen_on("unix:/tmp/[A]"), "unix:/tmp/[A]");
  for (const auto* const own : {"127.0.0.1", "127.0.0.2", "127.255.255.254", "localhost",
                                "LocalHost", "::1", "[::1]", "unix:a"})
    EXPECT_TRUE(is_own_address(own)) << own;
  for (const auto* const other : {"0.0.0.0", "::", "[::]", "", "[127.0.0.1", "localhost.", "::10",
                                  "126.255.255.255", "128.0.0.1", "127.1", "127.0.0.1.example.org"})
    EXPECT_FALSE(is_own_address(other)) << other;
}

TEST(HostName, MayBeAllowedByItsEnd) {
  const std::set<std::string> patterns = {".example.org", "*.other.net", "one.com"};
  for (const auto* const name :
       {"example.org", "a.example.org", "a.b.example.org", "a.other.net", "one.com"})
    EXPECT_TRUE(is_host_among(patterns, name)) << name;
  for (const auto* const name :
       {"evilexample.org", "example.org.evil.com", "other.net", "a.one.com", "org", "", "."})
    EXPECT_FALSE(is_host_among(patterns, name)) << name;
}

// RFC 6454, section 6.2: a default port is left out.
TEST(Origin, LeavesItsDefaultPortOut) {
  EXPECT_EQ(plain_origin("HTTPS://Example.org:443"), "https://example.org");
  EXPECT_EQ(plain_origin("http://example.org:80"), "http://example.org");
  EXPECT_EQ(plain_origin("http://example.org:443"), "http://example.org:443");
  EXPECT_EQ(plain_origin("http://[::1]:80"), "http://[::1]");
  EXPECT_EQ(plain_origin("https://example.org:8443"), "https://example.org:8443");
  EXPECT_EQ(plain_origin("null"), "null");
  EXPECT_EQ(plain_origin("file://"), "file://");
}

TEST(Prefix, IsAPathThatLeadsNowhereElse) {
  EXPECT_EQ(plain_prefix("/pictures/"), "/pictures");
  EXPECT_EQ(plain_prefix("/a/b-c_d.e~1"), "/a/b-c_d.e~1");
  EXPECT_EQ(plain_prefix("/"), "");
  EXPECT_EQ(plain_prefix(""), "");
  for (const auto* const odd : {"pictures", "//evil.example", "/a//b", "/a/../b", "/a b", "/a\"><b",
                                "/a\r\nb", "/a?b", "https://evil.example/", "/%2f"})
    EXPECT_THROW(plain_prefix(odd), ApiError) << odd;
}

struct Taken {
  std::string prefix, path;
  bool operator==(const Taken&) const = default;
};
Taken taken(const std::string& path, const std::string& forwarded, const std::string& base = "") {
  HttpRequest request;
  request.path = path;
  if (!forwarded.empty()) request.headers["x-forwarded-prefix"] = forwarded;
  take_prefix(request, base);
  return {request.prefix, request.path};
}

// Some proxies take it off, others do not.
TEST(Prefix, IsTakenOffThePathWhereTheProxyHasNot) {
  EXPECT_EQ(taken("/v1/jobs", "/a"), (Taken{"/a", "/v1/jobs"}));
  EXPECT_EQ(taken("/a/v1/jobs", "/a"), (Taken{"/a", "/v1/jobs"}));
  EXPECT_EQ(taken("/a/v1/jobs", "", "/a"), (Taken{"/a", "/v1/jobs"}));
  EXPECT_EQ(taken("/a", "", "/a"), (Taken{"/a", "/"}));
  EXPECT_EQ(taken("/a/", "", "/a"), (Taken{"/a", "/"}));
  EXPECT_EQ(taken("/ab/c", "", "/a"), (Taken{"/a", "/ab/c"})) << "another name";
  EXPECT_EQ(taken("/livez", "", "/a"), (Taken{"/a", "/livez"})) << "asked directly";
  EXPECT_EQ(taken("/v1/jobs", "/a, /b"), (Taken{"/a/b", "/v1/jobs"})) << "of two proxies";
  EXPECT_EQ(taken("/v1/jobs", "//evil.example", "/a"), (Taken{"/a", "/v1/jobs"}));
}

TEST(AddressText, OfIpv4IsTheSameOnEverySocket) {
  const auto text = [](const char* address) {
    return address_text(net::ip::tcp::endpoint(net::ip::make_address(address), 80));
  };
  EXPECT_EQ(text("::ffff:127.0.0.2"), "127.0.0.2");
  EXPECT_EQ(text("127.0.0.2"), "127.0.0.2");
  EXPECT_EQ(text("::1"), "::1");
  EXPECT_EQ(address_text(net::local::stream_protocol::endpoint("/tmp/a")), "unix");
}

}  // namespace braid::serve::address_test
