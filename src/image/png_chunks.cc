#include "image/png_chunks.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/byte_order.h"
#include "base/error.h"

namespace braid {
namespace {

using namespace std::literals;

constexpr auto kSignature = "\x89PNG\r\n\x1a\n"sv;
constexpr std::size_t kOverhead = 12;  // length, type and checksum of a chunk
constexpr std::size_t kHeaderBytes = 13;

std::uint32_t number_of(std::string_view bytes) {
  return std::uint32_t(big_endian(bytes.data(), 4));
}

bool checksum_holds(std::string_view type_and_bytes, std::uint32_t expected) {
  const auto* const data = reinterpret_cast<const Bytef*>(type_and_bytes.data());
  return crc32_z(crc32_z(0, nullptr, 0), data, type_and_bytes.size()) == expected;
}

// Takes one chunk off the front of `rest`.
PngChunk next_chunk(std::string_view& rest, const std::string& source) {
  require(rest.size() >= kOverhead, source, " is a damaged PNG: it ends without IEND");
  const std::size_t length = number_of(rest);
  require(length <= rest.size() - kOverhead, source, " is a damaged PNG: a chunk claims ", length,
          " bytes, ", rest.size() - kOverhead, " are left");
  const PngChunk chunk{rest.substr(4, 4), rest.substr(8, length)};
  require(checksum_holds(rest.substr(4, length + 4), number_of(rest.substr(length + 8))), source,
          " is a damaged PNG: a checksum does not match");
  rest.remove_prefix(length + kOverhead);
  return chunk;
}

int channels_of(int color_type) {
  switch (color_type) {
    case 0:  // grey
    case 3:  // palette
      return 1;
    case 4:  // grey, alpha
      return 2;
    case 2:  // RGB
      return 3;
    case 6:  // RGB, alpha
      return 4;
    default:
      return 0;
  }
}

// PNG's signature shows such changes (PNG Specification, 12.12): 7 bits per byte, Latin-1 written
// as UTF-8, or bytes that are not UTF-8 replaced; and line ends of another system behind an intact
// first part.
constexpr std::array kChangedBegins = {kSignature.substr(0, 4), "\tPNG"sv, "\xc2\x89PNG"sv,
                                       "\xef\xbf\xbdPNG"sv};

bool is_cut_signature(std::string_view bytes) {
  return !bytes.empty() && bytes.size() < kSignature.size() && kSignature.starts_with(bytes);
}

}  // namespace

bool begins_like_png(std::string_view bytes) {
  return is_cut_signature(bytes) ||
         std::ranges::any_of(kChangedBegins,
                             [&](std::string_view begin) { return bytes.starts_with(begin); });
}

std::vector<PngChunk> png_chunks(std::string_view png, const std::string& source) {
  require(begins_like_png(png), source, " is not a PNG");
  require(!is_cut_signature(png), source, " is a damaged PNG: it ends within its signature");
  require(png.starts_with(kSignature), source, " is a damaged PNG: its signature was changed, ",
          "as by a program that takes it for text; copy it as a binary file");
  png.remove_prefix(kSignature.size());
  std::vector<PngChunk> chunks;
  do {
    chunks.push_back(next_chunk(png, source));
    require(chunks.front().type == "IHDR", source,
            " is a damaged PNG: it does not begin with IHDR");
  } while (chunks.back().type != "IEND");
  return chunks;
}

PngHeader png_header(const PngChunk& ihdr, const std::string& source) {
  require(ihdr.bytes.size() == kHeaderBytes, source, " is a damaged PNG: IHDR has ",
          ihdr.bytes.size(), " bytes");
  const int depth = std::uint8_t(ihdr.bytes[8]);
  const int channels = channels_of(std::uint8_t(ihdr.bytes[9]));
  const bool known = depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
  const PngHeader header{number_of(ihdr.bytes), number_of(ihdr.bytes.substr(4)), channels,
                         depth * channels};
  require(known && channels > 0 && header.width > 0 && header.height > 0, source,
          " is a damaged PNG: IHDR holds impossible values");
  return header;
}

}  // namespace braid
