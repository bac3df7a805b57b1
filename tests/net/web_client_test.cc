// Certificates, secrets and redirects.
#include "net/http/web_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/made_certificate.h"
#include "net/stand_in_hub.h"

namespace braid::net::web_client_test {

using testing::HasSubstr;

class Https : public testing::Test {
  // Else they come before SSL_CERT_FILE.
  const SetVariable none_{"CURL_CA_BUNDLE", ""}, none_of_python_{"REQUESTS_CA_BUNDLE", ""};

 protected:
  WebAnswer ask(const StandInHub& hub) const {
    return WebClient().ask({.url = hub.endpoint() + "/org/name/resolve/main/a.txt"});
  }
  std::string failure(const StandInHub& hub) const {
    try {
      ask(hub);
    } catch (const WebFailure& lost) {
      EXPECT_EQ(lost.kind(), WebFailure::Kind::kLasting);
      return lost.what();
    }
    return "it was taken";
  }

  const TemporaryFolder folder_;
};

TEST_F(Https, TakesACertificateThatIsTrusted) {
  const auto file = made_certificate(folder_.path(), "IP:127.0.0.1");
  const StandInHub hub(file);
  hub.put("org/name/a.txt", "hello");
  for (const char* const name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    const SetVariable trusted(name, (folder_.path() / "only.pem").string());
    const auto answer = ask(hub);
    EXPECT_EQ(answer.status, 200) << name;
    EXPECT_EQ(answer.body, "hello") << name;
  }
}

TEST_F(Https, RefusesACertificateThatNobodySigned) {
  const StandInHub hub(made_certificate(folder_.path(), "IP:127.0.0.1"));
  hub.put("org/name/a.txt", "hello");
  EXPECT_THAT(failure(hub), HasSubstr("is not trusted"));
  EXPECT_TRUE(hub.requests().empty());
}

TEST_F(Https, RefusesTheCertificateOfAnotherHost) {
  const StandInHub hub(made_certificate(folder_.path(), "DNS:example.org"));
  hub.put("org/name/a.txt", "hello");
  const SetVariable trusted("SSL_CERT_FILE", (folder_.path() / "only.pem").string());
  EXPECT_THAT(failure(hub), HasSubstr("is not trusted"));
  EXPECT_TRUE(hub.requests().empty());
}

TEST_F(Https, DoesNotFollowToAnAddressWithoutIt) {
  const StandInHub plain, hub(made_certificate(folder_.path(), "IP:127.0.0.1"));
  hub.put("org/name/a.safetensors", "hello");
  hub.have_faults({{"away", plain.network()}});
  const SetVariable trusted("SSL_CERT_FILE", (folder_.path() / "only.pem").string());
  try {
    WebClient().ask({.url = hub.endpoint() + "/org/name/resolve/main/a.safetensors"});
    ADD_FAILURE() << "it was followed";
  } catch (const WebFailure& lost) {
    EXPECT_THAT(lost.what(), HasSubstr("redirects to an address that is not secure"));
  }
  EXPECT_TRUE(plain.requests().empty());
}

TEST(WebClient, SendsASecretToItsOwnOriginAlone) {
  const StandInHub hub;
  hub.put("org/name/a.safetensors", "hello");
  const auto answer = WebClient().ask(
      {.url = hub.endpoint() + "/org/name/resolve/main/a.safetensors", .bearer = "secret"});
  EXPECT_EQ(answer.body, "hello");
  const auto requests = hub.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0]["where"], "hub");
  EXPECT_EQ(requests[0]["token"], "secret");
  EXPECT_EQ(requests[1]["where"], "network");
  EXPECT_EQ(requests[1]["token"], "");
}

TEST(WebClient, BoundsAnswersAndTheirTime) {
  const StandInHub hub;
  hub.put("org/name/a.txt", std::string(1000, 'a'));
  WebRequest request{.url = hub.endpoint() + "/org/name/resolve/main/a.txt", .max_body = 999};
  EXPECT_THROW(WebClient().ask(request), Error);
  hub.have_faults({{"stall", {{"a.txt", 10}}}});
  request.deadline = std::chrono::milliseconds(300);
  try {
    WebClient().ask(request);
    ADD_FAILURE() << "it answered";
  } catch (const WebFailure& lost) {
    EXPECT_EQ(lost.kind(), WebFailure::Kind::kDeadline);
    EXPECT_THAT(lost.what(), HasSubstr("did not answer within 0.3 s"));
  }
}

TEST(WebClient, NamesTheHostThatIsNotThere) {
  try {
    WebClient().ask({.url = "http://127.0.0.1:1/a"});
    ADD_FAILURE() << "it answered";
  } catch (const WebFailure& lost) {
    EXPECT_EQ(lost.kind(), WebFailure::Kind::kPassing);
    EXPECT_THAT(lost.what(), HasSubstr("cannot reach 127.0.0.1:1"));
  }
}

TEST(WebAddress, IsOfTheWebAndKeepsPasswordsToItself) {
  EXPECT_EQ(host_of_url("https://me:secret@example.org:8443/a"), "example.org:8443");
  EXPECT_EQ(shown_url("https://me:secret@example.org:8443/a/b"), "https://example.org:8443/a/b");
  EXPECT_EQ(shown_url("http://token@[::1]:80/hub"), "http://[::1]:80/hub");
  EXPECT_EQ(shown_url("https://huggingface.co/org/name"), "https://huggingface.co/org/name");
  EXPECT_NO_THROW(require_web_address("HF_ENDPOINT", "http://127.0.0.1:80/hub"));
  for (const char* const other : {"", "example.org", "ftp://example.org", "file:///etc/passwd"})
    EXPECT_THROW(require_web_address("HF_ENDPOINT", other), InputError) << other;
  try {
    require_web_address("HF_ENDPOINT", "ftp://me:secret@example.org");
    ADD_FAILURE() << "it was taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("secret")));
  }
}

}  // namespace braid::net::web_client_test
