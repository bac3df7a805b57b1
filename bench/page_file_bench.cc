// How fast is a page read from a disk, beside a plain reader of the same file? 1 GiB in the folder
// that TMPDIR names.
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
constexpr std::int64_t kSize = std::int64_t(1) << 30, kPart = std::int64_t(4) << 20;

struct Page {
  Page() {
    auto name = (fs::temp_directory_path() / "braid_bench_XXXXXX").string();
    folder = ::mkdtemp(name.data());
    bytes = aligned_bytes(PageFile::kHeader + kSize);
    auto* const words = static_cast<std::uint64_t*>(bytes.mutable_data_ptr());
    for (std::int64_t i = 0; i < bytes.numel() / 8; ++i) words[i] = std::uint64_t(i) * 0x9E3779B1;
    file = PageFolder(folder).put(
        {static_cast<std::byte*>(bytes.mutable_data_ptr()), std::size_t(bytes.numel())}, "bench");
    path = fs::directory_iterator(folder)->path();
  }
  ~Page() { fs::remove_all(folder); }

  fs::path folder, path;
  Tensor bytes;
  std::shared_ptr<const PageFile> file;
};

Page& the_page() {
  static Page page;
  return page;
}

void checked(benchmark::State& state) {
  const auto into = aligned_bytes(kSize);
  auto& page = the_page();
  for (auto _ : state)
    page.file->read({static_cast<std::byte*>(into.mutable_data_ptr()), std::size_t(kSize)});
  if (!into.equal(page.bytes.narrow(0, PageFile::kHeader, kSize))) state.SkipWithError("wrong");
  state.SetBytesProcessed(kSize * std::int64_t(state.iterations()));
}

// Direct reads of 4 MiB one after the other.
void plain(benchmark::State& state) {
  const auto into = aligned_bytes(kSize);
  const int fd = ::open(the_page().path.c_str(), O_RDONLY | O_DIRECT);
  for (auto _ : state)
    for (std::int64_t at = 0; at < kSize; at += kPart)
      if (::pread(fd, static_cast<std::byte*>(into.mutable_data_ptr()) + at, kPart,
                  PageFile::kHeader + at) != kPart)
        state.SkipWithError("cannot be read directly");
  ::close(fd);
  state.SetBytesProcessed(kSize * std::int64_t(state.iterations()));
}

BENCHMARK(plain)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(4);
BENCHMARK(checked)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(4);
BENCHMARK(plain)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(4);
BENCHMARK(checked)->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(4);

}  // namespace
}  // namespace braid
