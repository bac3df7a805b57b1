// The examples of FIPS 180-4, and sha256sum's results for lengths around a block's.
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace braid::sha256_test {

TEST(Sha256, HasTheStandardsDigests) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, PadsAtEveryLength) {
  EXPECT_EQ(sha256_hex(std::string(55, 'a')),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(sha256_hex(std::string(64, 'a')),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(sha256_hex(std::string(1000, 'a')),
            "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}

// More bits than 16 bits can count, and bytes that are negative as chars.
TEST(Sha256, CountsAllBitsOfAnyBytes) {
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),  // also of the standard
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256_hex(std::string(10'000, 'a')),
            "27dd1f61b867b6a0f6e9d8a41c43231de52107e53ae424de8f847b821db4b711");
  std::string all;
  for (int i = 0; i < 256; ++i) all += char(i);
  EXPECT_EQ(sha256_hex(all), "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880");
}

TEST(Sha256, TakesPiecesOfAnySize) {
  const std::string bytes(1000, 'a');
  for (const std::size_t piece : {1, 7, 63, 64, 65, 128, 999, 1000}) {
    Sha256 digest;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      digest.add(std::string_view(bytes).substr(at, piece));
    EXPECT_EQ(digest.hex(), "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3")
        << piece;
  }
}

}  // namespace braid::sha256_test
