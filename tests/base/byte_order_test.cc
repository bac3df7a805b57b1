#include "base/byte_order.h"

#include <gtest/gtest.h>

#include <array>

namespace braid::byte_order_test {

TEST(ByteOrder, ReadsAnyNumberOfBytes) {
  const std::array<std::uint8_t, 8> bytes = {0x81, 2, 3, 4, 5, 6, 7, 0xf8};
  EXPECT_EQ(big_endian(bytes.data(), 1), 0x81u);
  EXPECT_EQ(big_endian(bytes.data(), 3), 0x810203u);
  EXPECT_EQ(big_endian(bytes.data(), 8), 0x81020304050607f8u);
  EXPECT_EQ(little_endian(bytes.data(), 1), 0x81u);
  EXPECT_EQ(little_endian(bytes.data(), 3), 0x030281u);
  EXPECT_EQ(little_endian(bytes.data(), 8), 0xf807060504030281u);
}

TEST(ByteOrder, TakesBytesOfEveryType) {
  const char text[] = {'\xff', 1};
  const std::byte bytes[] = {std::byte{0xff}, std::byte{1}};
  EXPECT_EQ(big_endian(text, 2), 0xff01u);
  EXPECT_EQ(little_endian(bytes, 2), 0x01ffu);
}

TEST(ByteOrder, AppendsTheLowestBytes) {
  std::string bytes = "x";
  append_big_endian(bytes, 0x01028384, 3);
  append_little_endian(bytes, 0x01028384, 3);
  EXPECT_EQ(bytes, "x\x02\x83\x84\x84\x83\x02");
}

}  // namespace braid::byte_order_test
