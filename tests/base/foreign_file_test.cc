// Files that are no weights: what people's disks have in their place. The beginnings are those that
// the formats' own specifications give.
#include "base/foreign_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::foreign_file_test {

using namespace std::literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 23802932552\n";

std::string format_of(const std::string& text) {
  return foreign_format(std::as_bytes(std::span(text)));
}

TEST(ForeignFile, IsNamed) {
  EXPECT_THAT(format_of(kPointer),
              AllOf(HasSubstr("a Git LFS pointer"), HasSubstr("git lfs pull")));
  for (const char* const page : {"<!doctype html><html>", "\n <!DOCTYPE HTML PUBLIC",
                                 "<html lang=\"en\">", "\xef\xbb\xbf<HTML>"})
    EXPECT_THAT(format_of(page), HasSubstr("a web page (HTML)")) << page;
  EXPECT_THAT(format_of(std::string("PK\3\4\0\0\10\10\0archive/data.pkl", 25)),
              AllOf(StartsWith("is a pickle"), HasSubstr(".safetensors")));
  EXPECT_THAT(format_of(std::string("PK\3\4\24\0\0\0\10\0model.onnx", 20)),
              AllOf(HasSubstr("a ZIP archive"), HasSubstr("pickle"), HasSubstr("unpacked")));
  EXPECT_THAT(format_of("\x80\x02}q\x01("), StartsWith("is a pickle"));
  EXPECT_THAT(format_of("\x1f\x8b\x08\x01"), HasSubstr("an archive (gzip)"));
  EXPECT_THAT(format_of("\x89PNG\r\n\x1a\n"), HasSubstr("a PNG picture"));
  EXPECT_THAT(format_of(std::string(5000, '\0')), HasSubstr("download was not completed"));
}

// The first bytes are those of the formats' specifications.
TEST(ForeignFile, IsAKindOfPicture) {
  const auto kind = [](const std::string& text) {
    return foreign_kind(std::as_bytes(std::span(text)));
  };
  EXPECT_EQ(kind("GIF89a"), "a GIF picture");
  EXPECT_EQ(kind("\0\0\0\x18"
                 "ftypheic\0\0\0\0mif1heic"s),
            "a HEIC picture");
  EXPECT_EQ(kind("\0\0\0\x1c"
                 "ftypmif1\0\0\0\0mif1avif"s),
            "an AVIF picture");
  EXPECT_EQ(kind("\0\0\0\x18"
                 "ftypisom\0\0\2\0isommp41"s),
            "a video (MP4)");
  EXPECT_EQ(kind("BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"s), "a BMP picture");
  for (const auto& tiff : {"II*\0\x08\0\0\0"s, "MM\0*\0\0\0\x08"s})
    EXPECT_EQ(kind(tiff), "a TIFF picture");
  for (const auto& jp2 : {"\0\0\0\x0cjP  \r\n\x87\n"s, "\xff\x4f\xff\x51"s})
    EXPECT_EQ(kind(jp2), "a JPEG 2000 picture");
  for (const auto& jxl : {"\0\0\0\x0cJXL \r\n\x87\n"s, "\xff\x0a\xfa\x7f\x01\x90\x20\x08"s})
    EXPECT_EQ(kind(jxl), "a JPEG XL picture");
  for (const auto* const svg : {"<svg xmlns=\"", "<?xml version=\"1.0\"?>\n<svg width=\"4\">"})
    EXPECT_EQ(kind(svg), "an SVG picture");
  EXPECT_EQ(kind("RIFF\0\0\0\0WEBPVP8 "s), "a WebP picture");
  EXPECT_EQ(kind("RIFF\0\0\0\0AVI LIST"s), "a video (AVI)");
  EXPECT_EQ(kind("%PDF-1.7"), "a PDF document");
  EXPECT_EQ(kind("<!doctype html>"), "a web page (HTML)");
  EXPECT_EQ(kind("PK\3\4"), "a ZIP archive");
  EXPECT_EQ(kind("\x1f\x8b\x08"), "an archive (gzip)");
  EXPECT_EQ(kind(kPointer), "a Git LFS pointer");
  EXPECT_EQ(format_of("8BPS\0\1"s), "is a Photoshop picture, not weights");
}

// The length of a safetensors file's header may have their first bytes.
TEST(ForeignFile, IsNoPictureByTwoBytes) {
  for (const auto& text :
       {"BM\0\0\0\0\0\0{\"a\":{\"dtype\""s, "II*\0\0\0\0\0{\"a\":"s, "\xff\x0a\0\0\0\0\0\0{\"a\":"s,
        "BM"s, "MM\0*"s, "ftyp"s, "RIFF"s, "a text"s, ""s})
    EXPECT_EQ(foreign_kind(std::as_bytes(std::span(text))), "");
}

// The hub answers so without a token, and so do S3 and Civitai.
TEST(ForeignFile, IsAMessageAboutAccess) {
  for (const char* const message :
       {"Access to model black-forest-labs/FLUX.1-dev is restricted. You must have access to it.",
        "Access to model black-forest-labs/FLUX.1-dev is restricted and you are not in the "
        "authorized list.",
        "Invalid username or password.",
        R"({"error":"Invalid credentials in Authorization header"})",
        R"({"error":"Unauthorized","message":"The creator"})",
        "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>"})
    EXPECT_THAT(format_of(message), AllOf(HasSubstr("refused access"), HasSubstr("access token")))
        << message;
  EXPECT_THAT(format_of("one\ntwo"), HasSubstr("\"one two\"")) << "one line";
}

TEST(ForeignFile, IsNoMessageAboutAccessByAWordAlone) {
  for (const char* const text :
       {"Entry not found", "the access code of the safe is 1234", "token = abc", "login: me",
        R"({"token": "abc", "permission": "all"})", R"({"error": "the disk is full"})",
        "<a>access denied</a>", "Forbidding mountains"})
    EXPECT_THAT(format_of(text), AllOf(HasSubstr("not weights; it begins with \""),
                                       Not(HasSubstr("refused access"))))
        << text;
  const auto long_text = "Access to model a is restricted." + std::string(2000, 'x');
  EXPECT_THAT(format_of(long_text), Not(HasSubstr("refused access"))) << "no answer is as long";
}

TEST(ForeignFile, IsToldOfWithoutItsWords) {
  for (const std::string secret : {"secret", "se\"cret; it begins with \"more", "{\"secret\": 1}",
                                   "Invalid credentials: secret"}) {
    const auto whole = "a.safetensors is not a safetensors file: it " + format_of(secret);
    const auto told = without_quoted_begin(whole);
    EXPECT_THAT(whole, HasSubstr("cret")) << secret;
    EXPECT_THAT(told, AllOf(StartsWith("a.safetensors is not a safetensors file: it is text"),
                            Not(HasSubstr("cret")), Not(HasSubstr("begins with"))));
  }
  EXPECT_EQ(without_quoted_begin("the mask is black"), "the mask is black");
}

TEST(ForeignFile, IsNoFileOfNumbers) {
  EXPECT_EQ(format_of(std::string("\x48\1\0\0\0\0\0\0{\"a\"", 12)), "");
  EXPECT_EQ(format_of(std::string("GGUF\3\0\0\0", 8)), "");
  EXPECT_EQ(format_of(""), "");
}

TEST(ForeignFile, PointersAreReadByNobody) {
  const TemporaryFolder folder;
  write_file(folder / "a.json", kPointer);
  const auto says = AllOf(HasSubstr("a.json"), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(message_of([&] { (void)read_file(folder / "a.json"); }), says);
  EXPECT_THAT(message_of([&] { (void)MappedFile(folder / "a.json"); }), says);
  EXPECT_THAT(message_of([&] { (void)read_json(folder / "a.json"); }), says);
  write_file(folder / "a.json", "<html>");
  EXPECT_THAT(message_of([&] { (void)read_json(folder / "a.json"); }),
              HasSubstr("should hold JSON, it is a web page"));
}

TEST(ForeignFile, UnfinishedDownloadsAreKnownByName) {
  const TemporaryFolder folder;
  const auto refusal = [&](const char* name) {
    return message_of([&] { require_complete_download(folder / name); });
  };
  for (const char* const name : {"a.safetensors.part", "b.incomplete", "c.crdownload", "d.PART"})
    EXPECT_THAT(refusal(name), HasSubstr("not completed")) << name;
  EXPECT_EQ(refusal("a.safetensors"), "");
  write_file(folder / "a.safetensors.aria2", "");
  EXPECT_THAT(refusal("a.safetensors"), HasSubstr("aria2"));
  EXPECT_EQ(unfinished_download(folder / "a.safetensors").filename(), "a.safetensors.aria2");
  EXPECT_EQ(unfinished_download(folder / "b.safetensors"), "");
}

}  // namespace braid::foreign_file_test
