// Any bytes are either a PNG whose pixels and text survive a rewrite, or give a one-sentence error.
#include <zlib.h>

#include <cstdlib>
#include <random>

#include "base/error.h"
#include "image/png.h"

namespace {

constexpr std::size_t kSignature = 8, kOverhead = 12;

std::size_t big_endian(const std::uint8_t* at) {
  return std::size_t(at[0]) << 24 | std::size_t(at[1]) << 16 | std::size_t(at[2]) << 8 | at[3];
}

// Corrects the checksum of every whole chunk, so that the code after the check is tested.
void mend_checksums(std::string& png) {
  auto* const data = reinterpret_cast<std::uint8_t*>(png.data());
  std::size_t at = kSignature;
  while (at + kOverhead <= png.size()) {
    const auto length = big_endian(data + at);
    if (length > png.size() - at - kOverhead) return;
    const auto sum = crc32_z(0, data + at + 4, length + 4);
    for (int i = 0; i < 4; ++i) data[at + 8 + length + i] = std::uint8_t(sum >> (24 - 8 * i));
    at += length + kOverhead;
  }
}

void expect(bool holds) {
  if (!holds) std::abort();
}

void try_pixels(const std::string& png) {
  const auto image = braid::decode_png(png, "input");
  expect(image.rgb.size() == std::size_t(image.width) * std::size_t(image.height) * 3);
  if (image.width > 4096 || image.height > 4096) return;  // to stay fast
  const auto again = braid::encode_png(image.width, image.height, image.rgb);
  expect(braid::decode_png(again, "again").rgb == image.rgb);
}

void try_text(const std::string& png) {
  const auto text = braid::read_png_text(png, "input");
  const std::uint8_t pixel[3] = {};
  const auto again = braid::encode_png(1, 1, pixel, text);  // or InputError: a key may be too long
  expect(braid::read_png_text(again, "again") == text);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (std::minstd_rand(seed)() % 8 == 0) return size;  // some checksums stay wrong
  std::string png(reinterpret_cast<const char*>(data), size);
  mend_checksums(png);
  std::copy(png.begin(), png.end(), data);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string png(reinterpret_cast<const char*>(data), size);
  for (const auto attempt : {try_pixels, try_text}) {
    try {
      attempt(png);
    } catch (const braid::InputError&) {
    }
  }
  return 0;
}
