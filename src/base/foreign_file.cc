#include "base/foreign_file.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/ascii.h"
#include "base/byte_order.h"
#include "base/error.h"
#include "base/file.h"

namespace braid {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::size_t kLooked = 4096;  // bytes

constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";

constexpr const char* kNoPickles =
    "which can run programs when it is read: Braid reads .safetensors and .gguf, so look for the "
    "model in such a file, or convert it where you trust it";

struct Magic {
  std::string_view begin;
  const char* what;
};
constexpr std::array kArchives = std::to_array<Magic>({{"\x1f\x8b"sv, "gzip"},
                                                       {"\xfd"
                                                        "7zXZ"sv,
                                                        "xz"},
                                                       {"7z\xbc\xaf\x27\x1c"sv, "7z"},
                                                       {"Rar!"sv, "rar"},
                                                       {"BZh"sv, "bzip2"},
                                                       {"\x28\xb5\x2f\xfd"sv, "zstd"}});
constexpr std::array kOthers = std::to_array<Magic>({{"\x89PNG"sv, "a PNG picture"},
                                                     {"\xff\xd8\xff"sv, "a JPEG picture"},
                                                     {"GIF8"sv, "a GIF picture"},
                                                     {"8BPS"sv, "a Photoshop picture"},
                                                     {"\x76\x2f\x31\x01"sv, "an OpenEXR picture"},
                                                     {"II\xbc"sv, "a JPEG XR picture"},
                                                     {"\0\0\0\x0cjP  "sv, "a JPEG 2000 picture"},
                                                     {"\xff\x4f\xff\x51"sv, "a JPEG 2000 picture"},
                                                     {"\0\0\0\x0cJXL "sv, "a JPEG XL picture"},
                                                     {"qoif"sv, "a QOI picture"},
                                                     {"\x1a\x45\xdf\xa3"sv, "a video (WebM)"},
                                                     {"%PDF"sv, "a PDF document"},
                                                     {"\x7f"
                                                      "ELF"sv,
                                                      "a program"},
                                                     {"\x93NUMPY"sv, "an array of NumPy's"},
                                                     {"\x89HDF"sv, "an HDF5 file of Keras"},
                                                     {"ggml"sv, "a file of GGML's older format"},
                                                     {"lmgg"sv, "a file of GGML's older format"},
                                                     {"tjgg"sv, "a file of GGML's older format"}});

std::string_view text_of_bytes(std::span<const std::byte> file) {
  return {reinterpret_cast<const char*>(file.data()), std::min(file.size(), kLooked)};
}

std::string_view without_space(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // UTF-8's mark
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? "" : text.substr(begin);
}

bool is_web_page(std::string_view text) {
  const auto begin = ascii_lower_case(without_space(text).substr(0, 64));
  return begin.starts_with("<!doctype html") || begin.starts_with("<html") ||
         begin.starts_with("<head") || begin.starts_with("<body") || begin.starts_with("<!--");
}

// Pictures and videos whose first bytes may also begin a file of weights are told by more of them.
bool is_bmp(std::string_view text) {
  constexpr std::array kHeaders = {12, 40, 52, 56, 64, 108, 124};  // bytes, by version
  constexpr std::size_t kReserved = 6, kHeader = 14;
  return text.starts_with("BM") && text.size() >= kHeader + 4 &&
         text.substr(kReserved, 4) == "\0\0\0\0"sv &&
         std::ranges::count(kHeaders, int(little_endian(text.data() + kHeader, 4))) > 0;
}

bool is_tiff(std::string_view text) {
  const bool is_named = text.starts_with("II*\0"sv) || text.starts_with("MM\0*"sv);
  return is_named && text.size() >= 8 && text.substr(4, 4) != "\0\0\0\0"sv;
}

// A bare codestream (ISO/IEC 18181-1). The length of a safetensors file's header ends in zeros.
bool is_jpeg_xl_codestream(std::string_view text) {
  return text.starts_with("\xff\x0a") && text.size() >= 8 && text.substr(3, 5) != "\0\0\0\0\0"sv;
}

// ISO base media: its first box names the brands.
std::string_view media_kind(std::string_view text) {
  constexpr std::size_t kBoxName = 4, kBrands = 8, kBrand = 4;
  if (text.size() < kBrands + kBrand || text.substr(kBoxName, 4) != "ftyp") return "";
  const auto size = std::size_t(big_endian(text.data(), 4));
  const auto brands = text.substr(kBrands, std::max(size, kBrands + kBrand) - kBrands);
  const auto has = [&](std::string_view brand) { return brands.find(brand) != brands.npos; };
  if (has("avif") || has("avis")) return "an AVIF picture";
  if (has("heic") || has("heix") || has("hevc") || has("mif1")) return "a HEIC picture";
  return "a video (MP4)";
}

bool is_svg(std::string_view text) {
  const auto begin = without_space(text);
  return begin.starts_with("<svg") ||
         (begin.starts_with("<?xml") && begin.find("<svg") != begin.npos);
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 32 || c == '\n' || c == '\r' || c == '\t';
  });
}

constexpr std::string_view kQuotes = "; it begins with \"";

// The first words, on one line. The clause ends with them.
std::string quoted_begin(std::string_view text) {
  constexpr std::size_t kQuoted = 120;
  std::string words(without_space(text).substr(0, kQuoted));
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  while (!words.empty() && (words.back() == ' ' || (words.back() & 0xc0) == 0x80)) words.pop_back();
  return std::string(kQuotes) + words + (text.size() > kQuoted ? " ..." : "") + "\"";
}

// What Hugging Face, Civitai and S3 answer, in a few lines.
bool is_refusal_of_access(std::string_view text) {
  constexpr std::size_t kLongestAnswer = 1024;
  if (text.size() > kLongestAnswer) return false;
  const auto lower = ascii_lower_case(without_space(text));
  const auto has = [&](std::string_view words) { return lower.find(words) != lower.npos; };
  if (lower.starts_with('<')) return has("<code>accessdenied</code>");
  if (lower.starts_with('{'))
    return has("\"error\"") && (has("unauthorized") || has("forbidden") || has("restricted") ||
                                has("gated repo") || has("invalid credentials"));
  if (lower.starts_with("access to "))
    return has("is restricted") || has("authorized list") || has("must be authenticated");
  for (const char* const begin :
       {"invalid username or password", "invalid credentials", "unauthorized", "forbidden",
        "401 unauthorized", "403 forbidden", "cannot access gated repo"})
    if (lower.starts_with(begin)) return true;
  return false;
}

std::string text_clause(std::string_view text) {
  const auto begin = without_space(text);
  const bool is_json = begin.starts_with('{') || begin.starts_with('[');
  const bool is_xml = begin.starts_with('<');
  const auto kind = text_of("is text", is_json ? " (JSON)" : is_xml ? " (XML)" : "");
  if (is_refusal_of_access(text))
    return text_of(
        kind, ", the answer of a server that refused access: accept the model's licence ",
        "on its page, and download the file again with an access token", quoted_begin(text));
  return text_of(kind, ", not weights", quoted_begin(text));
}

// PyTorch's files are ZIP archives with a pickle in them.
std::string zip_clause(std::string_view text) {
  const bool is_pickle = text.find("data.pkl") != text.npos || text.find(".pkl") != text.npos;
  if (is_pickle)
    return text_of("is a pickle, PyTorch's own format (.ckpt, .pt, .bin), ", kNoPickles);
  return text_of(
      "is a ZIP archive: either weights in PyTorch's own format (.ckpt, .pt, .bin), a pickle, ",
      kNoPickles, "; or files to be unpacked first");
}

bool is_pickle(std::string_view text) {
  return text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
}

constexpr std::array kUnfinished = {".part",       ".partial",  ".incomplete",
                                    ".crdownload", ".download", ".opdownload",
                                    ".aria2",      ".!qb",      ".!ut"};

// A noun; empty if the beginning tells nothing.
std::string_view other_kind(std::string_view text) {
  for (const auto& [begin, what] : kOthers)
    if (text.starts_with(begin)) return what;
  if (is_bmp(text)) return "a BMP picture";
  if (is_tiff(text)) return "a TIFF picture";
  if (is_svg(text)) return "an SVG picture";
  if (is_jpeg_xl_codestream(text)) return "a JPEG XL picture";
  const auto riff = text.starts_with("RIFF") && text.size() >= 12 ? text.substr(8, 4) : "";
  if (riff == "WEBP") return "a WebP picture";
  if (riff == "AVI ") return "a video (AVI)";
  return media_kind(text);
}

}  // namespace

std::string foreign_kind(std::span<const std::byte> file) {
  const auto text = text_of_bytes(file);
  if (text.starts_with(kPointer)) return "a Git LFS pointer";
  if (is_web_page(text)) return "a web page (HTML)";
  if (text.starts_with("PK\x03\x04")) return "a ZIP archive";
  for (const auto& [begin, name] : kArchives)
    if (text.starts_with(begin)) return text_of("an archive (", name, ")");
  return std::string(other_kind(text));
}

std::string foreign_format(std::span<const std::byte> file) {
  const auto text = text_of_bytes(file);
  if (text.empty()) return "";
  if (text.starts_with(kPointer))
    return "is a Git LFS pointer, not the file itself: fetch it with 'git lfs pull', or download "
           "it again";
  if (is_web_page(text))
    return "is a web page (HTML), not the file itself: download it again, from the address of the "
           "file, with an access token if the page asks to log in";
  if (text.starts_with("PK\x03\x04")) return zip_clause(text);
  if (is_pickle(text)) return text_of("is a pickle, PyTorch's older format, ", kNoPickles);
  for (const auto& [begin, name] : kArchives)
    if (text.starts_with(begin)) return text_of("is an archive (", name, "): unpack it first");
  if (const auto what = other_kind(text); !what.empty())
    return text_of("is ", what, ", not weights");
  const bool is_empty_yet = text.size() == kLooked && text.find_first_not_of('\0') == text.npos;
  if (is_empty_yet) return "begins with zeros only: its download was not completed";
  return is_printable(text) ? text_clause(text) : "";
}

std::string without_quoted_begin(std::string sentence) {
  sentence.resize(std::min(sentence.find(kQuotes), sentence.size()));
  return sentence;
}

void require_no_pointer(std::span<const std::byte> file, const std::filesystem::path& path) {
  require(!text_of_bytes(file).starts_with(kPointer), path.string(), " ", foreign_format(file));
}

void require_complete_download(const std::filesystem::path& path) {
  const auto extension = ascii_lower_case(path.extension().string());
  const bool is_named_so =
      std::find(kUnfinished.begin(), kUnfinished.end(), extension) != kUnfinished.end();
  require(!is_named_so, path.string(), " is a download that was not completed (", extension,
          "): let it finish, or download the file again");
  auto note = path;
  note += ".aria2";
  require(!is_there(note), path.string(),
          " is a download of aria2's that was not completed: ", note.filename().string(),
          " lies beside it; let it finish, or download the file again");
}

std::filesystem::path unfinished_download(const std::filesystem::path& path) {
  for (const char* const extension : kUnfinished) {
    auto unfinished = path;
    unfinished += extension;
    if (is_there(unfinished)) return unfinished;
  }
  return {};
}

}  // namespace braid
