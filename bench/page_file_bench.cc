// How fast is a page read from a disk, and from the system's cache, compared with plain reads of
// the same file? 1 GiB in the folder named by TMPDIR.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "weights/paging/cpu_device.h"
#include "weights/paging/page_file.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
const auto kId = id_of("bench");
constexpr std::int64_t kSize = std::int64_t(1) << 30, kPart = std::int64_t(4) << 20;

struct Page {
  Page() {
    auto name = (fs::temp_directory_path() / "braid_bench_XXXXXX").string();
    folder = ::mkdtemp(name.data());
    bytes = aligned_bytes(PageFile::kHeader + kSize);
    auto* const words = static_cast<std::uint64_t*>(bytes.mutable_data_ptr());
    for (std::int64_t i = 0; i < bytes.numel() / 8; ++i) words[i] = std::uint64_t(i) * 0x9E3779B1;
    PageFolder(folder).put(span_of(bytes), kId);
    path = fs::directory_iterator(folder)->path();
  }
  ~Page() { fs::remove_all(folder); }

  fs::path folder, path;
  Tensor bytes;
};

Page& the_page() {
  static Page page;
  return page;
}

// Whether the file is in the system's cache when reading begins.
enum class Cached { kNo, kYes };

void prepare(Cached cached) {
  const int fd = ::open(the_page().path.c_str(), O_RDONLY);
  if (cached == Cached::kNo) ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  std::vector<char> part(kPart);
  for (std::int64_t at = 0; cached == Cached::kYes && at < kSize; at += kPart)
    if (::pread(fd, part.data(), part.size(), at) < 0) std::abort();
  ::close(fd);
}

void checked(benchmark::State& state, DiskReads reads, Cached cached) {
  const auto into = aligned_bytes(kSize);
  auto& page = the_page();
  const PageFile file(page.path, kId, kSize, reads);
  for (auto _ : state) {
    state.PauseTiming();
    prepare(cached);
    state.ResumeTiming();
    file.read(span_of(into));
  }
  if (!into.equal(page.bytes.narrow(0, PageFile::kHeader, kSize))) state.SkipWithError("wrong");
  state.SetBytesProcessed(kSize * std::int64_t(state.iterations()));
}

// Reads of 4 MiB, one after another.
void plain(benchmark::State& state, Cached cached) {
  const auto into = aligned_bytes(kSize);
  const int fd = ::open(the_page().path.c_str(), O_RDONLY | (cached == Cached::kNo ? O_DIRECT : 0));
  for (auto _ : state) {
    state.PauseTiming();
    prepare(cached);
    state.ResumeTiming();
    for (std::int64_t at = 0; at < kSize; at += kPart)
      if (::pread(fd, static_cast<std::byte*>(into.mutable_data_ptr()) + at, kPart,
                  PageFile::kHeader + at) != kPart)
        state.SkipWithError("cannot be read");
  }
  ::close(fd);
  state.SetBytesProcessed(kSize * std::int64_t(state.iterations()));
}

int add_all() {
  for (int round = 0; round < 2; ++round)  // a disk's speed varies over time
    for (const auto cached : {Cached::kNo, Cached::kYes}) {
      const std::string where = cached == Cached::kNo ? "/disk" : "/cache";
      const auto add = [](const std::string& name, auto body) {
        benchmark::RegisterBenchmark(name.c_str(), body)
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime()
            ->Iterations(4);
      };
      add("plain" + where, [=](benchmark::State& state) { plain(state, cached); });
      for (const auto& [name, reads] : {std::pair{"direct", DiskReads::kDirect},
                                        {"mapped", DiskReads::kMapped},
                                        {"auto", DiskReads::kAuto}})
        add(name + where,
            [=, reads = reads](benchmark::State& state) { checked(state, reads, cached); });
    }
  return 0;
}

const int kAdded = add_all();

}  // namespace
}  // namespace braid
