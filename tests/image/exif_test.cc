// Orientations as cameras write them: among other entries, behind other segments, with fill bytes.
#include "image/exif.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "image/picture_file.h"

namespace braid::exif_test {

using namespace std::literals;

std::string number(std::uint32_t value, int bytes, bool is_big) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += char(value >> 8 * (is_big ? bytes - 1 - i : i));
  return text;
}

struct Entry {
  std::uint32_t tag, type, value;
};

// A TIFF structure with one directory, after `gap` bytes.
std::string tiff_of(const std::vector<Entry>& entries, bool is_big, std::uint32_t gap = 0) {
  const auto n = [&](std::uint32_t value, int bytes) { return number(value, bytes, is_big); };
  auto tiff = (is_big ? "MM"s : "II"s) + n(42, 2) + n(8 + gap, 4) + std::string(gap, '\xff');
  tiff += n(std::uint32_t(entries.size()), 2);
  for (const auto& [tag, type, value] : entries)
    tiff += n(tag, 2) + n(type, 2) + n(1, 4) + (type == 3 ? n(value, 2) + "\0\0"s : n(value, 4));
  return tiff + n(0, 4);
}

constexpr std::uint32_t kWidth = 0x0100, kMake = 0x010f, kOrientation = 0x0112;
constexpr std::uint32_t kShort = 3, kLong = 4;

TEST(Exif, HasTheOrientationAmongOtherEntries) {
  for (const bool is_big : {false, true})
    for (const std::uint32_t gap : {0u, 2u, 300u})
      for (std::uint32_t turn = 1; turn <= 8; ++turn) {
        const auto tiff = tiff_of(
            {{kWidth, kShort, 6}, {kMake, kLong, 3}, {kOrientation, kShort, turn}}, is_big, gap);
        EXPECT_EQ(exif_orientation(tiff), int(turn)) << is_big << gap;
        for (std::size_t size = 0; size + 8 < tiff.size(); ++size)
          EXPECT_EQ(exif_orientation(std::string_view(tiff).substr(0, size)), 1) << size;
      }
}

TEST(Exif, ThatIsNoneIsUpright) {
  for (const bool is_big : {false, true}) {
    const std::vector<Entry> turned = {{kOrientation, kShort, 6}};
    for (const std::uint32_t none : {0u, 9u, 256u, 65535u})
      EXPECT_EQ(exif_orientation(tiff_of({{kOrientation, kShort, none}}, is_big)), 1) << none;
    EXPECT_EQ(exif_orientation(tiff_of({{kOrientation, kLong, 6}}, is_big)), 1) << "no such type";
    auto tiff = tiff_of(turned, is_big);
    EXPECT_EQ(exif_orientation(tiff), 6);
    tiff[is_big ? 3 : 2] = 43;
    EXPECT_EQ(exif_orientation(tiff), 1) << "not TIFF";
  }
}

// -------------------------------------------------------------------------------------- files

std::string segment(char marker, const std::string& data) {
  return "\xff"s + marker + number(std::uint32_t(data.size() + 2), 2, true) + data;
}

std::string picture(const std::string& name) {
  return read_file(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures" / name);
}

const auto kTurned = tiff_of({{kMake, kLong, 3}, {kOrientation, kShort, 6}}, true);
const auto kExif = segment('\xe1', "Exif\0\0"s + kTurned);

TEST(Exif, OfAJpegIsFoundBehindOtherSegments) {
  const auto xmp = segment('\xe1', "http://ns.adobe.com/xap/1.0/\0<x/>"s);
  const auto comment = segment('\xfe', "a comment");
  const auto plain = picture("plain.jpg");  // 37 x 21
  for (const auto& before : {""s, xmp, comment + xmp, "\xff\xff\xff"s, segment('\xe2', "")}) {
    const auto jpeg = plain.substr(0, 2) + before + kExif + plain.substr(2);
    EXPECT_EQ(exif_of_jpeg(jpeg), kTurned);
    const auto turned = decode_picture(jpeg, "it");
    EXPECT_EQ(std::pair(turned.width, turned.height), std::pair(21, 37));
  }
  EXPECT_EQ(exif_of_jpeg("\xff\xd8"s + kExif), kTurned) << "up to the last byte";
  EXPECT_EQ(exif_of_jpeg("\xff\xd8"s + xmp), "");
  EXPECT_EQ(exif_of_jpeg("\xff\xd8\xff\xda\0\x02"s + kExif), "") << "pixels, not segments";
  EXPECT_EQ(exif_of_jpeg("\xff\xd8\xff\xe0\0\x01"s + kExif), "") << "a size within itself";
}

// Pillow reads both: later versions of JFIF, and bytes between segments that belong to none.
TEST(Exif, JpegsThatAreUnusualAreNotDamaged) {
  const auto plain = picture("plain.jpg");
  const auto want = decode_picture(plain, "it").rgb;
  auto later = plain;
  ASSERT_EQ(later.substr(6, 5), "JFIF\0"s);
  later[11] = 2;  // the major version
  EXPECT_EQ(decode_picture(later, "it").rgb, want);
  const auto scan = plain.find("\xff\xda");
  EXPECT_EQ(decode_picture(plain.substr(0, scan) + "\0\0\0"s + plain.substr(scan), "it").rgb, want);
}

std::string webp_chunk(const std::string& name, const std::string& bytes) {
  return name + number(std::uint32_t(bytes.size()), 4, false) + bytes +
         (bytes.size() % 2 ? "\0"s : "");
}

TEST(Exif, OfAWebPIsFoundBehindChunksOfOddSizes) {
  const auto webp = [](const std::string& chunks) { return "RIFF____WEBP"s + chunks; };
  for (const auto& before : {""s, webp_chunk("ICCP", "abc"), webp_chunk("XMP ", "abcd")}) {
    EXPECT_EQ(exif_of_webp(webp(before + webp_chunk("EXIF", kTurned))), kTurned);
    EXPECT_EQ(exif_of_webp(webp(before + webp_chunk("EXIF", "Exif\0\0"s + kTurned))), kTurned)
        << "with a JPEG's name, as some programs write it";
  }
  EXPECT_EQ(exif_of_webp(webp(webp_chunk("VP8 ", "EXIF\x02\0\0\0MM"s))), "") << "within another";
  const auto cut = webp(webp_chunk("EXIF", kTurned));
  for (std::size_t size = 0; size + 1 < cut.size(); ++size)
    EXPECT_EQ(exif_of_webp(std::string_view(cut).substr(0, size)), "") << size;
}

}  // namespace braid::exif_test
