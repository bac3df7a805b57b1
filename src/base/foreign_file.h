// What a file is that is not of the wanted format: what lies on people's disks under the names of
// models.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace braid {

// What the file is and what to do, as a clause after its path: "is a Git LFS pointer, not the file
// itself: ..."; empty if its beginning tells nothing. `file` may be only its first 4096 bytes.
std::string foreign_format(std::span<const std::byte> file);

// What the file is, as a noun: "a HEIC picture", "a web page (HTML)"; empty if its beginning tells
// nothing. `file` may be only its first 4096 bytes.
std::string foreign_kind(std::span<const std::byte> file);

// A sentence with such a clause at its end, without the words of the file that it may quote: for
// those who may not read the file.
std::string without_quoted_begin(std::string sentence);

// Throws InputError for a Git LFS pointer in place of the file.
void require_no_pointer(std::span<const std::byte> file, const std::filesystem::path& path);

// Throws InputError for the file of a download that was not completed, by its name or by the note
// that aria2 keeps beside it.
void require_complete_download(const std::filesystem::path& path);

// The unfinished download of the file that is missing at `path`, if there is one; else empty.
std::filesystem::path unfinished_download(const std::filesystem::path& path);

}  // namespace braid
