#include "weights/paging/page_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/hexadecimal.h"
#include "weights/paging/checksum.h"
#include "weights/paging/page_bytes.h"

namespace braid {
namespace {

constexpr std::int64_t kLeastPart = std::int64_t(4) << 20;  // bytes read at once
constexpr std::int64_t kMostParts = 480;                    // as many checksums fit the header
constexpr int kReaders = 2;                                 // threads: one reads while one checks

struct Header {
  char magic[8];
  PageId id;
  std::int64_t size, part_bytes;
  std::uint64_t own_checksum;  // of the header with this field zero
  std::uint64_t checksums[kMostParts];
};
static_assert(sizeof(Header) <= PageFile::kHeader);

constexpr char kMagic[8] = {'B', 'R', 'A', 'I', 'D', 'P', 'G', '2'};

std::int64_t bytes_per_part(std::int64_t size) {
  return std::max(kLeastPart, round_up((size + kMostParts - 1) / kMostParts, kPageAlignment));
}

std::size_t num_parts(std::int64_t size, std::int64_t part_bytes) {
  return std::size_t((size + part_bytes - 1) / part_bytes);
}

std::uint64_t checksum_of(Header header) {
  header.own_checksum = 0;
  return checksum(std::as_bytes(std::span(&header, 1)));
}

Header header_of(std::span<const std::byte> contents, PageId id) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.size = std::int64_t(contents.size());
  header.part_bytes = bytes_per_part(header.size);
  for (std::size_t part = 0; part < num_parts(header.size, header.part_bytes); ++part) {
    const auto begin = part * std::size_t(header.part_bytes);
    const auto count = std::min(contents.size() - begin, std::size_t(header.part_bytes));
    header.checksums[part] = checksum(contents.subspan(begin, count));
  }
  header.id = id;
  header.own_checksum = checksum_of(header);
  return header;
}

// Files that are older than this one may be damaged.
constexpr const char* kMark = "damaged";

// A folder that cannot be written keeps its pages, too.
void mark_damaged(const std::filesystem::path& folder) {
  try {
    write_file(folder / kMark, "A page of this folder was damaged. Older pages are verified.\n");
  } catch (const Error&) {
  }
}

}  // namespace

std::string PageId::text() const { return hex_digits(high) + hex_digits(low); }

PageId id_of(std::string_view recipe) {
  const auto bytes = std::as_bytes(std::span(recipe));
  return {checksum(bytes, 1), checksum(bytes, 2)};
}

PageFile::PageFile(const std::filesystem::path& path, PageId id, std::int64_t size, DiskReads reads)
    : path_(path), id_(id), reads_(reads), size_(size) {
  const FileReader reader(path, reads);
  Header header{};
  const bool is_read = reader.read(0, std::as_writable_bytes(std::span(&header, 1)));
  const bool is_sound = is_read && std::memcmp(header.magic, kMagic, sizeof kMagic) == 0 &&
                        header.own_checksum == checksum_of(header);
  const bool fits = is_sound && header.id == id && header.size == size &&
                    header.part_bytes == bytes_per_part(size) && reader.size() == kHeader + size;
  require(fits, "the page ", path, is_sound ? " holds other weights" : " is damaged");
  part_bytes_ = header.part_bytes;
  checksums_.assign(header.checksums, header.checksums + num_parts(size, part_bytes_));
}

struct PageFile::Damaged {
  std::string fact;
};

void PageFile::remove() const {
  std::error_code gone;
  std::filesystem::remove(path_, gone);
}

void PageFile::read_part(const FileReader& reader, std::size_t part,
                         std::span<std::byte> into) const {
  const auto offset = kHeader + std::int64_t(part) * part_bytes_;
  if (!reader.read(offset, into)) throw Damaged{"cannot be read, or was cut short"};
  if (checksum(into) != checksums_[part])
    throw Damaged{"is damaged: its contents do not match their checksum"};
}

void PageFile::read(std::span<std::byte> into) const {
  try {
    read_parts(into);
  } catch (const Damaged& damaged) {
    remove();
    mark_damaged(path_.parent_path());
    throw Error(text_of("the page ", path_, " ", damaged.fact,
                        "; it was removed, and is rebuilt when the model is loaded again, as are "
                        "any others that are damaged"));
  }
}

bool PageFile::is_sound_or_removed() const {
  const auto contents = aligned_bytes(size_);
  try {
    read_parts(span_of(contents));
    return true;
  } catch (const Damaged&) {
    remove();
    return false;
  }
}

void PageFile::read_parts(std::span<std::byte> into) const {
  const FileReader reader(path_, reads_);
  std::atomic<std::size_t> next = 0;
  std::vector<std::exception_ptr> failures(kReaders);
  const auto work = [&](int thread) {
    try {
      for (auto part = next++; part < checksums_.size(); part = next++) {
        const auto begin = part * std::size_t(part_bytes_);
        read_part(reader, part,
                  into.subspan(begin, std::min(into.size() - begin, std::size_t(part_bytes_))));
      }
    } catch (...) {
      failures[std::size_t(thread)] = std::current_exception();
      next = checksums_.size();
    }
  };
  {
    const std::jthread second(checksums_.size() > 1 ? std::jthread(work, 1) : std::jthread());
    work(0);
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

// Pages are read long after their folder was named, when the process may work in another directory.
PageFolder::PageFolder(const std::filesystem::path& folder, DiskReads reads) : reads_(reads) {
  std::error_code failed;
  folder_ = std::filesystem::absolute(folder, failed);
  if (!failed) std::filesystem::create_directories(folder_, failed);
  require(!failed, "cannot make the folder of pages ", folder, ": ", failed.message());
}

std::filesystem::path PageFolder::path_of(PageId id) const {
  return folder_ / (id.text() + ".page");
}

std::shared_ptr<const PageFile> PageFolder::find(PageId id, std::int64_t size) const {
  std::error_code missing;
  if (std::filesystem::status(path_of(id), missing).type() == std::filesystem::file_type::not_found)
    return nullptr;
  try {
    auto file = std::make_shared<const PageFile>(path_of(id), id, size, reads_);
    if (!is_suspect(path_of(id))) return file;
    if (!file->is_sound_or_removed()) return nullptr;
    std::filesystem::last_write_time(path_of(id), std::filesystem::file_time_type::clock::now(),
                                     missing);
    return file;
  } catch (const InputError&) {
    return nullptr;  // incomplete
  }
}

bool PageFolder::is_suspect(const std::filesystem::path& page) const {
  std::error_code missing;
  const auto marked = std::filesystem::last_write_time(folder_ / kMark, missing);
  if (missing) return false;
  const auto written = std::filesystem::last_write_time(page, missing);
  return !missing && written <= marked;
}

std::shared_ptr<const PageFile> PageFolder::put(std::span<std::byte> page, PageId id) const {
  const auto header = header_of(page.subspan(PageFile::kHeader), id);
  std::memset(page.data(), 0, PageFile::kHeader);
  std::memcpy(page.data(), &header, sizeof header);
  write_file(path_of(id), {reinterpret_cast<const char*>(page.data()), page.size()});
  return std::make_shared<const PageFile>(path_of(id), id, header.size, reads_);
}

}  // namespace braid
