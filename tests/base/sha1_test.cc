// The examples of FIPS 180-4, and what `git hash-object` and sha1sum say.
#include "base/sha1.h"

#include <gtest/gtest.h>

namespace braid::sha1_test {

std::string sha1_of(const std::string& bytes, std::size_t piece) {
  Sha1 digest;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    digest.add(std::string_view(bytes).substr(at, piece));
  return digest.hex();
}

TEST(Sha1, HasTheStandardsDigests) {
  EXPECT_EQ(sha1_of("abc", 3), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha1_of("", 1), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

TEST(Sha1, TakesPiecesOfAnySize) {
  const std::string bytes(1000, 'a');
  for (const std::size_t piece : {1, 7, 63, 64, 65, 128, 999, 1000})
    EXPECT_EQ(sha1_of(bytes, piece), "291e9a6c66994949b57ba5e650361e98fc36b1ba") << piece;
}

TEST(Sha1, NamesFilesAsGitDoes) {
  Sha1 digest;
  digest.add(git_blob_head(6));
  digest.add("hello\n");
  EXPECT_EQ(digest.hex(), "ce013625030ba8dba906f756967f9e9ca394464a");
}

}  // namespace braid::sha1_test
