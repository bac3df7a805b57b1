// Names, dates and hashes as a hub writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "message_of.h"
#include "net/hub/hub_words.h"

namespace braid::net::hub_words_test {

using testing::HasSubstr;

TEST(RequireInside, TakesNamesOfFiles) {
  for (const char* const path : {"a", "a/b.json", ".gitattributes", "a..b/c", "ü/é", "a b", "C:/a",
                                 "a\\..\\b", "run 12:30.json"})
    EXPECT_NO_THROW(require_inside(path, "org/name")) << path;
}

TEST(RequireInside, RefusesWhatWouldLieElsewhere) {
  for (const std::string path :
       {"", "/etc/passwd", "../a", "a/../../b", "a/..", ".", "a//b", "a/", "a\nb"})
    EXPECT_THROW(require_inside(path, "org/name"), InputError) << path;
  EXPECT_THROW(require_inside(std::string("a\0b", 3), "org/name"), InputError);
  EXPECT_THROW(require_inside(std::string(2000, 'a'), "org/name"), InputError);
}

// RFC 3986, section 2.3.
TEST(PercentEncoded, KeepsUnreservedLettersAndSlashes) {
  EXPECT_EQ(percent_encoded("a/B-c_d.e~9"), "a/B-c_d.e~9");
  EXPECT_EQ(percent_encoded("a b?c#d%e+ü"), "a%20b%3Fc%23d%25e%2B%C3%BC");
}

// RFC 9110, section 10.2.3; its date is 784111777 s after 1970.
TEST(SecondsToWait, AreANumberOrUntilADate) {
  EXPECT_EQ(seconds_to_wait("120", 0), 120);
  EXPECT_EQ(seconds_to_wait("Sun, 06 Nov 1994 08:49:37 GMT", 784111777 - 30), 30);
  EXPECT_EQ(seconds_to_wait("Sun, 06 Nov 1994 08:49:37 GMT", 784111777 + 30), 0);
  for (const char* const other : {"", "soon", "-3", "1.5", "99999999999999999999"})
    EXPECT_EQ(seconds_to_wait(other, 0), std::nullopt) << other;
}

// huggingface_hub 2.4's parse_ratelimit_headers(), and the second that it adds.
TEST(SecondsToReset, AreThoseOfALimitThatIsReached) {
  EXPECT_EQ(seconds_to_reset("\"api\";r=0;t=55"), 56);
  EXPECT_EQ(seconds_to_reset("\"resolvers\" ; r=0 ; t=0"), 1);
  EXPECT_EQ(seconds_to_reset("\"api\";r=0;t=5, \"pages\";r=9;t=300"), 6);
  for (const char* const other : {"", "\"api\";r=3;t=55", "\"api\";r=0", "\"api\";t=55",
                                  "\"api\";r=0;t=soon", "\"api\";r=0;t=99999999999"})
    EXPECT_EQ(seconds_to_reset(other), std::nullopt) << other;
}

}  // namespace braid::net::hub_words_test
