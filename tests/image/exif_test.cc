// Orientations as cameras write them: among other entries, behind other segments, with fill bytes.
#include "image/exif.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "base/hexadecimal.h"
#include "image/picture_file.h"
#include "make_png.h"
#include "message_of.h"

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

int size_of(std::uint32_t type) { return type == 3 || type == 8 ? 2 : type == 6 ? 1 : 4; }

// A TIFF structure with one directory, after `gap` bytes.
std::string tiff_of(const std::vector<Entry>& entries, bool is_big, std::uint32_t gap = 0) {
  const auto n = [&](std::uint32_t value, int bytes) { return number(value, bytes, is_big); };
  auto tiff = (is_big ? "MM"s : "II"s) + n(42, 2) + n(8 + gap, 4) + std::string(gap, '\xff');
  tiff += n(std::uint32_t(entries.size()), 2);
  for (const auto& [tag, type, value] : entries)
    tiff += n(tag, 2) + n(type, 2) + n(1, 4) + (n(value, size_of(type)) + "\0\0\0"s).substr(0, 4);
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
    for (const std::uint32_t type : {1u, 2u, 7u, 11u})
      EXPECT_EQ(exif_orientation(tiff_of({{kOrientation, type, 6}}, is_big)), 1) << type;
    auto tiff = tiff_of(turned, is_big);
    EXPECT_EQ(exif_orientation(tiff), 6);
    tiff[is_big ? 3 : 2] = 43;
    EXPECT_EQ(exif_orientation(tiff), 1) << "not TIFF";
  }
}

// Pillow's exif_transpose turns all of them.
TEST(Exif, MayHaveTheOrientationAsAnyInteger) {
  for (const bool is_big : {false, true})
    for (const std::uint32_t type : {3u, 4u, 6u, 8u, 9u})
      EXPECT_EQ(exif_orientation(tiff_of({{kMake, kLong, 3}, {kOrientation, type, 6}}, is_big)), 6)
          << type;
}

TEST(Exif, MayBeginWithItsNameTwice) {
  const auto tiff = tiff_of({{kOrientation, kShort, 6}}, false);
  EXPECT_EQ(exif_orientation("Exif\0\0"s + tiff), 6);
  EXPECT_EQ(exif_orientation("Exif\0\0Exif\0\0"s + tiff), 6);
  EXPECT_EQ(exif_orientation("Exif\0"s + tiff), 1);
}

// A TIFF structure with a user's comment.
std::string with_comment(const std::string& comment, bool is_big) {
  const auto n = [&](std::uint32_t value, int bytes) { return number(value, bytes, is_big); };
  const auto directory = [&](std::uint32_t tag, std::uint32_t type, std::size_t count,
                             std::uint32_t value) {
    return n(1, 2) + n(tag, 2) + n(type, 2) + n(std::uint32_t(count), 4) + n(value, 4) + n(0, 4);
  };
  return (is_big ? "MM"s : "II"s) + n(42, 2) + n(8, 4) + directory(0x8769, kLong, 1, 26) +
         directory(0x9286, 7, comment.size(), 44) + comment;
}

std::string utf16_of(const std::u16string& text, bool is_big) {
  std::string bytes;
  for (const char16_t unit : text) bytes += number(unit, 2, is_big);
  return bytes;
}

// The web UI and Forge write big-endian text whatever the file is, others follow the file.
TEST(Exif, HasACommentInEitherOrderOfBytes) {
  const auto comment = [](const std::u16string& text, bool is_big, bool is_big_file) {
    return exif_comment(with_comment("UNICODE\0"s + utf16_of(text, is_big), is_big_file));
  };
  const auto text = u"a fox \u72d0\u72f8\nSteps: 20"s;
  EXPECT_EQ(comment(text, true, true), "a fox \u72d0\u72f8\nSteps: 20");
  EXPECT_EQ(comment(text, true, false), "a fox \u72d0\u72f8\nSteps: 20");
  EXPECT_EQ(comment(text, false, false), "a fox \u72d0\u72f8\nSteps: 20");
  EXPECT_EQ(comment(u"ab\u4e00\u4e00"s, true, false), "ab\u4e00\u4e00") << "half is not most";
  EXPECT_EQ(comment(u""s, false, false), "");
}

TEST(Exif, HasACommentWithoutItsPadding) {
  const auto padded = u"hi\0there\0\0\0\0\0\0\0\0\0\0\0\0\0"s;
  for (const bool is_big : {false, true})
    EXPECT_EQ(exif_comment(with_comment("UNICODE\0"s + utf16_of(padded, is_big), is_big)),
              "hi\0there"s);
  EXPECT_EQ(exif_comment(with_comment("ASCII\0\0\0hi\0\0"s, false)), "hi");
  EXPECT_EQ(exif_comment(with_comment("ASCII\0\0\0h\0i"s, false)), std::nullopt);
}

TEST(Xmp, HasTheOrientationWherePillowFindsIt) {
  EXPECT_EQ(orientation_of("", R"(<rdf:Description a="1" tiff:Orientation="6"/>)"), 6);
  EXPECT_EQ(orientation_of("", "<tiff:Orientation>8</tiff:Orientation>"), 8);
  EXPECT_EQ(orientation_of("", "tiff:Orientation='6' <tiff:Orientation>3<"), 3);
  for (const auto* const none : {"", "tiff:Orientation", "tiff:Orientation=\"", "tiff:Orientation>",
                                 "tiff:Orientation=\"0\"", "<tiff:Orientation>9<",
                                 "tiff:Orientation = \"6\"", "exif:Orientation=\"6\""})
    EXPECT_EQ(orientation_of("", none), 1) << none;
}

TEST(Xmp, CountsWhereExifIsSilent) {
  const std::string xmp = "tiff:Orientation=\"3\"";
  EXPECT_EQ(orientation_of(tiff_of({{kMake, kLong, 3}}, true), xmp), 3);
  EXPECT_EQ(orientation_of(tiff_of({{kOrientation, kShort, 6}}, true), xmp), 6);
  EXPECT_EQ(orientation_of(tiff_of({{kOrientation, kShort, 1}}, true), xmp), 1) << "upright";
}

// -------------------------------------------------------------------------------------- files

std::string segment(char marker, const std::string& data) {
  return "\xff"s + marker + number(std::uint32_t(data.size() + 2), 2, true) + data;
}

std::string picture(const std::string& name) {
  return read_file(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures" / name);
}

std::pair<int, int> sides(const std::string& file) {
  const auto picture = decode_picture(file, "it");
  return {picture.width, picture.height};
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

// Pillow and libjpeg skip them, and markers without a size.
TEST(Exif, OfAJpegIsFoundBehindStrayBytes) {
  const auto plain = picture("plain.jpg");  // 37 x 21
  for (const auto& before : {"\0\0"s, "stray"s, "\xff\0\x01"s, "\xff\x01"s, "\xff\xd3\0"s}) {
    const auto jpeg = plain.substr(0, 2) + before + kExif + plain.substr(2);
    EXPECT_EQ(exif_of_jpeg(jpeg), kTurned);
  }
  EXPECT_EQ(sides(plain.substr(0, 20) + "\0\0"s + kExif + plain.substr(20)), std::pair(21, 37));
  for (const auto& none : {"\xff\xd8"s, "\xff\xd8stray"s, "\xff\xd8\xff\xff\xff"s,
                           "\xff\xd8\xff\xe1"s, "\xff\xd8\xff\xe1\0"s})
    EXPECT_EQ(exif_of_jpeg(none), "");
}

const std::string kTurnedByXmp = R"(<rdf:Description tiff:Orientation="6"/>)";
const auto kXmp = segment('\xe1', "http://ns.adobe.com/xap/1.0/\0"s + kTurnedByXmp);

TEST(Xmp, TurnsJpegs) {
  const auto plain = picture("plain.jpg");
  const auto with = [&](const std::string& segments) {
    return sides(plain.substr(0, 2) + segments + plain.substr(2));
  };
  EXPECT_EQ(with(kXmp), std::pair(21, 37));
  const auto upright = segment('\xe1', "Exif\0\0"s + tiff_of({{kOrientation, kShort, 1}}, true));
  EXPECT_EQ(with(kXmp + upright), std::pair(37, 21));
  EXPECT_EQ(xmp_of_jpeg(plain), "");
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

constexpr char kHasExif = 0x08, kHasXmp = 0x04;

std::string riff(const std::string& chunks) { return webp_chunk("RIFF", "WEBP" + chunks); }

// The head of a WebP's extended form.
std::string extended(char flags, int width = 33, int height = 18) {
  return webp_chunk("VP8X", flags + "\0\0\0"s + number(std::uint32_t(width - 1), 3, false) +
                                number(std::uint32_t(height - 1), 3, false));
}

TEST(Exif, OfAWebPIsFoundBehindChunksOfOddSizes) {
  const auto webp = [](const std::string& chunks) { return riff(extended(kHasExif) + chunks); };
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

// libwebp's demuxer, and Pillow with it, stores no metadata that the head does not announce.
TEST(Exif, OfAWebPCountsOnlyIfItsHeadAnnouncesIt) {
  const auto exif = webp_chunk("EXIF", kTurned), xmp = webp_chunk("XMP ", "<x/>");
  EXPECT_EQ(exif_of_webp(riff(extended(kHasXmp) + exif + xmp)), "");
  EXPECT_EQ(xmp_of_webp(riff(extended(kHasXmp) + exif + xmp)), "<x/>");
  EXPECT_EQ(xmp_of_webp(riff(extended(kHasExif) + exif + xmp)), "");
  EXPECT_EQ(exif_of_webp(riff(exif)), "") << "no head";
  EXPECT_EQ(exif_of_webp(riff(exif + extended(kHasExif))), "") << "the head comes first";
  EXPECT_EQ(exif_of_webp(riff(extended(kHasExif)) + exif), "") << "behind the file's end";
}

TEST(Xmp, TurnsWebPs) {
  const auto plain = picture("lossy.webp");  // 33 x 18
  EXPECT_EQ(sides(plain), std::pair(33, 18));
  const auto with = [&](char flags, const std::string& chunks) {
    return sides(riff(extended(flags) + plain.substr(12) + chunks));
  };
  const auto xmp = webp_chunk("XMP ", kTurnedByXmp);
  EXPECT_EQ(with(kHasXmp, xmp), std::pair(18, 33));
  EXPECT_EQ(with(0, xmp), std::pair(33, 18)) << "Pillow ignores it, too";
  const auto upright = webp_chunk("EXIF", tiff_of({{kOrientation, kShort, 1}}, true));
  EXPECT_EQ(with(kHasXmp | kHasExif, xmp + upright), std::pair(33, 18));
}

// ------------------------------------------------------------- animations of a single frame

std::string frame(const std::string& chunks, int width, int height, int left = 0) {
  const auto n = [](int value) { return number(std::uint32_t(value), 3, false); };
  return webp_chunk("ANMF",
                    n(left / 2) + n(0) + n(width - 1) + n(height - 1) + n(100) + "\0"s + chunks);
}

// Pillow opens them as pictures, like PNGs of one frame.
TEST(Animations, OfOneWholeFrameArePictures) {
  constexpr char kIsAnimated = 0x02, kHasAlpha = 0x10;
  const auto animation = webp_chunk("ANIM", "\0\0\0\0\0\0"s);
  for (const auto* const name : {"lossy.webp", "clear.webp"}) {
    const auto plain = picture(name);
    const auto want = decode_picture(plain, name);
    const auto [width, height] = std::pair(want.width, want.height);
    const auto head = extended(kIsAnimated | kHasAlpha, width, height) + animation;
    const auto chunks = plain.substr(plain.compare(12, 4, "VP8X") == 0 ? 30 : 12);
    const auto whole = frame(chunks, width, height);
    EXPECT_EQ(decode_picture(riff(head + whole), "it").rgb, want.rgb) << name;
    const auto size = stored_size(riff(head + whole), "it");
    EXPECT_EQ(std::pair(int(size.width), int(size.height)), std::pair(width, height));
    for (const auto& other : {whole + whole, frame(chunks, width, height, 2),
                              frame(chunks, width - 1, height), frame("", width, height)})
      EXPECT_EQ(message_of([&] { decode_picture(riff(head + other), "it"); }),
                "it is an animated WebP: give one picture");
    const auto larger = extended(kIsAnimated, width + 1, height) + frame(chunks, width + 1, height);
    EXPECT_EQ(message_of([&] { decode_picture(riff(larger), "it"); }),
              "it is a damaged WebP: its header cannot be read");
  }
  const auto turned = extended(kIsAnimated | kHasExif) +
                      frame(picture("lossy.webp").substr(12), 33, 18) + webp_chunk("EXIF", kTurned);
  EXPECT_EQ(sides(riff(turned)), std::pair(18, 33));
}

std::string png(const std::string& chunks) {
  return png_of(ihdr(2, 1, 8, 2), "\0\x01\x02\x03\x04\x05\x06"sv, chunks);
}

// "\nexif\n", the size in eight columns, and lines of 72 digits.
std::string raw_profile(const std::string& bytes) {
  auto text = "\nexif\n      " + std::to_string(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    text += (i % 36 == 0 ? "\n" : "") + hex_digits(std::uint8_t(bytes[i]));
  return text + "\n";
}

TEST(Exif, OfAPngIsAChunkOrText) {
  const std::string key = "Raw profile type exif\0"s;
  const auto profile = raw_profile("Exif\0\0"s + kTurned);
  for (const auto& chunks :
       {chunk("eXIf", kTurned), chunk("eXIf", "Exif\0\0"s + kTurned), chunk("tEXt", key + profile),
        chunk("zTXt", key + "\0"s + packed(profile)),
        chunk("tEXt", "no end of a key") + chunk("tEXt", key + raw_profile(kTurned))})
    EXPECT_EQ(sides(png(chunks)), std::pair(1, 2)) << chunks;
  const auto upright = chunk("eXIf", tiff_of({{kOrientation, kShort, 1}}, true));
  EXPECT_EQ(sides(png(chunk("tEXt", key + profile) + upright)), std::pair(2, 1));
  for (const auto& odd : {""s, "\n"s, "\nexif\n"s, "\nexif\n 3\n"s, "\nexif\n 3\nfox"s, "\n\n\n4"s})
    EXPECT_EQ(sides(png(chunk("tEXt", key + odd))), std::pair(2, 1)) << odd;
}

TEST(Xmp, TurnsPngs) {
  const auto xmp = chunk("iTXt", "XML:com.adobe.xmp\0\0\0\0\0"s + kTurnedByXmp);
  EXPECT_EQ(sides(png(xmp)), std::pair(1, 2));
  const auto upright = chunk("eXIf", tiff_of({{kOrientation, kShort, 1}}, true));
  EXPECT_EQ(sides(png(xmp + upright)), std::pair(2, 1));
  EXPECT_EQ(sides(png(chunk("iTXt", "comment\0\0\0\0\0"s + kTurnedByXmp))), std::pair(2, 1));
}

}  // namespace braid::exif_test
