// What the host part of a CUDA C++ program is compiled with in place of nvcc and libcudart (see warplab.program).
//
// Each file of the program includes it first; one more file, which defines WARPLAB_RUNTIME, holds the functions. These
// ask the simulator, a Python process at the other end of a socket, by name and integers. Device memory is a file that
// both processes map: at its device addresses, where the host may touch only managed and pinned memory and what Thrust
// and CUB have touched, and a second time for copies. A function that is not here is one the linker misses.
#pragma once
#pragma GCC system_header
#define cudaDeviceProp cudaDeviceProp13  // which has fewer members than CUDA 12 has, below
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>
#include <driver_types.h>
#undef cudaDeviceProp
#include <vector_functions.h>
#include <vector_types.h>

#include <algorithm>
#include <cassert>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(WARPLAB_DEVICE) || defined(WARPLAB_HOST)  // the two passes over a .cu file
// From here on these words stay what they are, as the passes over the source look for them.
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __managed__
#undef __launch_bounds__
#undef __grid_constant__
#undef __cluster_dims__
#define __CUDACC__ 1
#endif
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#ifdef WARPLAB_DEVICE
#define __CUDA_ARCH__ WARPLAB_DEVICE
#else
#include <device_launch_parameters.h>  // threadIdx, as a default argument of device code names it

extern "C" void warplab_configure(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = 0);
extern "C" void warplab_launch(const void* kernel, void** arguments);
extern "C" void warplab_variable(const void* variable, int unit, int number);
extern "C" void warplab_managed(void* variable, size_t bytes);

// What nvcc gives host code beyond the C++ library.
namespace cooperative_groups {  // for declarations of functions that take them
struct cluster_group;
struct coalesced_group;
struct grid_group;
struct thread_block;
struct thread_group;
template <unsigned size, class parent = void> struct thread_block_tile;
}  // namespace cooperative_groups
namespace nvcuda {
namespace wmma {}
}  // namespace nvcuda
#define WARPLAB_PAIR(type)                                    \
  inline type min(type a, type b) { return b < a ? b : a; }   \
  inline type max(type a, type b) { return a < b ? b : a; }
WARPLAB_PAIR(int)
WARPLAB_PAIR(unsigned)
WARPLAB_PAIR(long)
WARPLAB_PAIR(unsigned long)
WARPLAB_PAIR(long long)
WARPLAB_PAIR(unsigned long long)
WARPLAB_PAIR(float)
WARPLAB_PAIR(double)
#undef WARPLAB_PAIR
#define WARPLAB_MIXED(a, b, result)                                                         \
  inline result min(a x, b y) { return min(static_cast<result>(x), static_cast<result>(y)); } \
  inline result max(a x, b y) { return max(static_cast<result>(x), static_cast<result>(y)); } \
  inline result min(b x, a y) { return min(static_cast<result>(x), static_cast<result>(y)); } \
  inline result max(b x, a y) { return max(static_cast<result>(x), static_cast<result>(y)); }
WARPLAB_MIXED(int, unsigned, unsigned)
WARPLAB_MIXED(long, unsigned long, unsigned long)
WARPLAB_MIXED(long long, unsigned long long, unsigned long long)
WARPLAB_MIXED(float, double, double)
#undef WARPLAB_MIXED
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }

template <class T>
inline const void* warplab_symbol(const T& symbol) { return &reinterpret_cast<const char&>(symbol); }
template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* source, size_t count, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return cudaMemcpyToSymbol(warplab_symbol(symbol), source, count, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t count, size_t offset = 0,
                                           cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t = 0) {
  return cudaMemcpyToSymbol(warplab_symbol(symbol), source, count, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, size_t count, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return cudaMemcpyFromSymbol(target, warplab_symbol(symbol), count, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* target, const T& symbol, size_t count, size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t = 0) {
  return cudaMemcpyFromSymbol(target, warplab_symbol(symbol), count, offset, kind);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol) {
  return cudaGetSymbolAddress(pointer, warplab_symbol(symbol));
}
template <class T>
inline cudaError_t cudaGetSymbolSize(size_t* size, const T& symbol) {
  return cudaGetSymbolSize(size, warplab_symbol(symbol));
}
template <class T>
inline cudaError_t cudaFuncSetCacheConfig(T* function, cudaFuncCache config) {
  return cudaFuncSetCacheConfig(reinterpret_cast<const void*>(function), config);
}
template <class T>
inline cudaError_t cudaFuncSetAttribute(T* function, cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(function), attribute, value);
}
template <class T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* function) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(function));
}
// As CUDA 12 declares them.
struct cudaDeviceProp : cudaDeviceProp13 {
  int clockRate, memoryClockRate, deviceOverlap, kernelExecTimeoutEnabled, computeMode, cooperativeMultiDeviceLaunch;
};
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int number);
inline cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
inline cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t stream = 0) { return cudaStreamQuery(stream); }
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
#endif

#ifdef WARPLAB_RUNTIME
#include <cuda.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

using Number = long long;
struct Reply {
  Number error, size;  // `size`: bytes of text that follow
  Number value[4];
};
struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  const void* place;
};

std::recursive_mutex taking_turns;
int line = -1;                // the socket
char *window, *device;        // device memory for copies, and at its own addresses
size_t device_bytes;
bool mapped;
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::vector<Configuration> configurations;
std::map<const void*, std::vector<Number>> parameters;  // bytes of each, by kernel
std::map<void*, size_t> pinned;

void read_all(void* target, size_t count) {
  for (char* at = static_cast<char*>(target); count;) {
    ssize_t got = recv(line, at, count, 0);
    if (got <= 0) _exit(70);  // the simulator has ended, and says why
    at += got, count -= got;
  }
}

void write_all(const void* source, size_t count) {
  for (const char* at = static_cast<const char*>(source); count;) {
    ssize_t sent = send(line, at, count, MSG_NOSIGNAL);
    if (sent <= 0) _exit(70);
    at += sent, count -= sent;
  }
}

// Ask for `name`; `more` are further bytes. Returns the reply, whose text goes to `text`.
Reply ask(const char* name, const void* place, std::initializer_list<Number> numbers, std::string* text = nullptr,
          const std::string& more = "") {
  std::lock_guard<std::recursive_mutex> turn(taking_turns);
  fflush(stdout);  // before what a kernel prints
  Number head[4] = {Number(strlen(name)), Number(numbers.size()), Number(more.size()), Number(place)};
  std::string message(reinterpret_cast<char*>(head), sizeof head);
  message += name;
  message.append(reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(Number));
  message += more;
  write_all(message.data(), message.size());
  Reply reply;
  read_all(&reply, sizeof reply);
  std::string answer(reply.size, 0);
  read_all(&answer[0], reply.size);
  if (text) *text = answer;
  return reply;
}

cudaError_t note(Number error) {
  if (error != cudaSuccess) last_error = cudaError_t(error);
  return cudaError_t(error);
}

#define HERE __builtin_extract_return_addr(__builtin_return_address(0))
#define ASK(...) note(ask(__func__, HERE, {__VA_ARGS__}).error)

// The host may touch managed and pinned memory, whole pages of it; all else of the device is out of its reach.
void map_pages(void* start, size_t count, int protection) {
  mprotect(start, (count + 4095) / 4096 * 4096, protection);
}

void* allocate(const char* name, const void* place, size_t count, bool host, cudaError_t* error) {
  Reply reply = ask(name, place, {Number(count), host});
  *error = note(reply.error);
  void* pointer = reinterpret_cast<void*>(reply.value[0]);
  if (host && pointer) map_pages(pointer, count, PROT_READ | PROT_WRITE);
  if (host && pointer) pinned[pointer] = count;
  return pointer;
}

cudaError_t release(const char* name, const void* place, void* pointer) {
  Reply reply = ask(name, place, {Number(pointer)});
  auto known = pinned.find(pointer);
  if (known != pinned.end() && !reply.error) {
    map_pages(pointer, known->second, PROT_NONE);
    pinned.erase(known);
  }
  return note(reply.error);
}

char* reachable(const void* pointer) {
  char* at = static_cast<char*>(const_cast<void*>(pointer));
  return at >= device && at < device + device_bytes ? window + (at - device) : at;
}

// What is captured while a stream is, in the order of the calls: each launch of the graph does it.
using Graph = std::vector<std::function<cudaError_t()>>;
Graph* captured;

cudaError_t now_or_captured(std::function<cudaError_t()> work) {
  if (!captured) return work();
  captured->push_back(std::move(work));
  return cudaSuccess;
}

// Rows of `width` bytes; the simulator has said that both sides are what the kind says.
cudaError_t copy(const char* name, const void* place, void* target, size_t target_pitch, const void* source,
                 size_t source_pitch, size_t width, size_t height, int kind) {
  return now_or_captured([=] {
    Reply reply = ask(name, place, {Number(target), Number(target_pitch), Number(source), Number(source_pitch),
                                    Number(width), Number(height), kind});
    if (reply.error == cudaSuccess)
      for (size_t row = 0; row < height; row++)
        memmove(reachable(target) + row * target_pitch, reachable(source) + row * source_pitch, width);
    return note(reply.error);
  });
}

cudaError_t fill(const char* name, const void* place, void* target, size_t pitch, int value, size_t width,
                 size_t height) {
  return now_or_captured([=] {
    return note(ask(name, place, {Number(target), Number(pitch), value, Number(width), Number(height)}).error);
  });
}

// A variable that host and kernels share. Each has its own memory, copied before and after each launch.
struct Managed {
  char *host, *here;
  size_t bytes;
};

std::vector<Managed>& managed() {
  static std::vector<Managed> known;
  return known;
}

cudaError_t launch(const char* name, const void* place, const void* kernel, dim3 grid, dim3 block, void** arguments,
                   size_t shared_bytes, dim3 cluster = {0, 0, 0}) {
  std::lock_guard<std::recursive_mutex> turn(taking_turns);
  if (!parameters.count(kernel)) {
    std::string sizes;
    Reply reply = ask("parameters", place, {Number(kernel)}, &sizes);
    if (reply.error) return note(reply.error);
    const Number* size = reinterpret_cast<const Number*>(sizes.data());
    parameters[kernel].assign(size, size + sizes.size() / sizeof(Number));
  }
  std::string bytes;
  size_t position = 0;
  for (Number size : parameters[kernel]) bytes.append(static_cast<char*>(arguments[position++]), size);
  return now_or_captured([=]() mutable {
    std::lock_guard<std::recursive_mutex> turn(taking_turns);
    for (Managed& one : managed()) {
      if (!one.here) {
        Reply reply = ask("cudaGetSymbolAddress", place, {Number(one.host)});
        if (reply.error) return note(reply.error);
        one.here = reinterpret_cast<char*>(reply.value[0]);
      }
      memmove(reachable(one.here), one.host, one.bytes);
      position = 0;
      for (Number size : parameters[kernel]) {  // an argument may point into it
        char* value;
        memcpy(&value, &bytes[position], size == sizeof value ? size : 0);
        if (size == sizeof value && value >= one.host && value < one.host + one.bytes) {
          value += one.here - one.host;
          memcpy(&bytes[position], &value, size);
        }
        position += size;
      }
    }
    Reply reply = ask(name, place, {Number(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                    cluster.x, cluster.y, cluster.z, Number(shared_bytes)}, nullptr, bytes);
    for (Managed& one : managed()) memmove(one.host, reachable(one.here), one.bytes);
    return note(reply.error);
  });
}

struct sigaction before_us;

void touched(int, siginfo_t* info, void*) {
  char* at = static_cast<char*>(info->si_addr);
  if (at >= device && at < device + device_bytes) {
    void* frames[32] = {};
    int count = backtrace(frames, 32);  // this function, the signal's, the one that touched it, its callers
    frames[2] = static_cast<char*>(frames[2]) + 1;  // as if it returned there
    std::string callers(reinterpret_cast<char*>(frames + 2), (count - 2) * sizeof *frames);
    Reply open = ask("touched", frames[2], {Number(at)}, nullptr, callers);
    if (open.error || !open.value[0]) _exit(139);
    void* pointer = reinterpret_cast<void*>(open.value[0]);
    map_pages(pointer, open.value[1], PROT_READ | PROT_WRITE);
    pinned[pointer] = open.value[1];
    return;
  }
  sigaction(SIGSEGV, &before_us, nullptr);
}

__attribute__((constructor(101))) void begin() {
  const char* told = getenv("WARPLAB_PROGRAM");
  Number address = 0, count = 0;
  int file = -1;
  if (!told || sscanf(told, "%d %d %lld %lld", &line, &file, &address, &count) != 4) {
    fputs("error: this program runs under python -m warplab run, and not where it starts itself once more\n", stderr);
    _exit(2);
  }
  unsetenv("WARPLAB_PROGRAM");  // the socket is this process's and its forks'
  fcntl(line, F_SETFD, FD_CLOEXEC);  // what the program starts and leaves running would keep `run` waiting
  device = reinterpret_cast<char*>(address);
  device_bytes = count;
  int flags = MAP_SHARED | MAP_NORESERVE;
  void* at = mmap(nullptr, count, PROT_READ | PROT_WRITE, flags, file, 0);
  void* same = mmap(device, count, PROT_NONE, flags | MAP_FIXED_NOREPLACE, file, 0);
  if (at == MAP_FAILED || same != device) {
    fputs("error: this system has no room for device memory at its addresses\n", stderr);
    _exit(2);
  }
  window = static_cast<char*>(at);
  void* warm[1];
  backtrace(warm, 1);  // loads what it needs, which a signal's handler must not
  struct sigaction action = {};
  action.sa_sigaction = touched;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before_us);
}

}  // namespace

extern "C" {

void warplab_configure(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t) {
  configurations.push_back({grid, block, shared_bytes, HERE});
}
void warplab_launch(const void* kernel, void** arguments) {
  if (configurations.empty()) {
    ask("called_as_function", HERE, {Number(kernel)});
    _exit(1);
  }
  Configuration made = configurations.back();
  configurations.pop_back();
  launch("launch", made.place, kernel, made.grid, made.block, arguments, made.shared_bytes);
}
void warplab_managed(void* variable, size_t bytes) { managed().push_back({static_cast<char*>(variable), nullptr, bytes}); }
void warplab_variable(const void* variable, int unit, int number) { ask("variable", HERE, {Number(variable), unit, number}); }
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t bytes, cudaStream_t) {
  return launch("launch", HERE, kernel, grid, block, arguments, bytes);
}
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t bytes,
                                        cudaStream_t) {
  return launch("launch_cooperative", HERE, kernel, grid, block, arguments, bytes);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  const char* name = "launch";
  dim3 cluster = {0, 0, 0};
  for (unsigned i = 0; i < config->numAttrs; i++) {  // the others ask for an order that there is anyway
    const cudaLaunchAttribute& one = config->attrs[i];
    if (one.id == cudaLaunchAttributeCooperative && one.val.cooperative) name = "launch_cooperative";
    if (one.id == cudaLaunchAttributeClusterDimension)
      cluster = {one.val.clusterDim.x, one.val.clusterDim.y, one.val.clusterDim.z};
  }
  return launch(name, HERE, kernel, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, cluster);
}

// Memory
#define ALLOCATE(name, host, more, ...)                      \
  cudaError_t name(void** pointer, size_t count __VA_ARGS__) { \
    if (!pointer) return note(cudaErrorInvalidValue);        \
    cudaError_t error;                                       \
    *pointer = allocate(#name, HERE, count, host, &error);   \
    return error;                                            \
  }
ALLOCATE(cudaMalloc, false, )
ALLOCATE(cudaMallocAsync, false, , , cudaStream_t)
ALLOCATE(cudaMallocHost, true, )
ALLOCATE(cudaHostAlloc, true, , , unsigned)
ALLOCATE(cudaMallocManaged, true, , , unsigned)
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  cudaError_t error;
  *pitch = (width + 511) / 512 * 512;
  *pointer = allocate(__func__, HERE, *pitch * height, false, &error);
  return error;
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* made, cudaExtent extent) {
  cudaError_t error;
  size_t pitch = (extent.width + 511) / 512 * 512;
  void* pointer = allocate("cudaMallocPitch", HERE, pitch * extent.height * extent.depth, false, &error);
  *made = {pointer, pitch, extent.width, extent.height};
  return error;
}
cudaError_t cudaFree(void* pointer) { return release(__func__, HERE, pointer); }
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return release(__func__, HERE, pointer); }
cudaError_t cudaFreeHost(void* pointer) { return release(__func__, HERE, pointer); }
cudaError_t cudaHostGetDevicePointer(void** pointer, void* host, unsigned) { return *pointer = host, cudaSuccess; }
cudaError_t cudaHostRegister(void* pointer, size_t count, unsigned flags) {
  return flags & cudaHostRegisterMapped ? ASK(Number(pointer), Number(count)) : cudaSuccess;
}
cudaError_t cudaHostUnregister(void*) { return ASK(); }
cudaError_t cudaMemcpy(void* target, const void* source, size_t count, cudaMemcpyKind kind) {
  return copy(__func__, HERE, target, count, source, count, count, 1, kind);
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t count, cudaMemcpyKind kind, cudaStream_t) {
  return copy(__func__, HERE, target, count, source, count, count, 1, kind);
}
cudaError_t cudaMemcpyPeer(void* target, int, const void* source, int, size_t count) {
  return copy(__func__, HERE, target, count, source, count, count, 1, cudaMemcpyDeviceToDevice);
}
cudaError_t cudaMemcpyPeerAsync(void* target, int, const void* source, int, size_t count, cudaStream_t) {
  return copy(__func__, HERE, target, count, source, count, count, 1, cudaMemcpyDeviceToDevice);
}
cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  return copy(__func__, HERE, target, target_pitch, source, source_pitch, width, height, kind);
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t) {
  return copy(__func__, HERE, target, target_pitch, source, source_pitch, width, height, kind);
}
cudaError_t cudaMemset(void* target, int value, size_t count) {
  return fill(__func__, HERE, target, count, value, count, 1);
}
cudaError_t cudaMemsetAsync(void* target, int value, size_t count, cudaStream_t) {
  return fill(__func__, HERE, target, count, value, count, 1);
}
cudaError_t cudaMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  return fill(__func__, HERE, target, pitch, value, width, height);
}
cudaError_t cudaMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height, cudaStream_t) {
  return fill(__func__, HERE, target, pitch, value, width, height);
}
cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  Reply reply = ask(__func__, HERE, {Number(symbol)});
  *pointer = reinterpret_cast<void*>(reply.value[0]);
  return note(reply.error);
}
cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  Reply reply = ask(__func__, HERE, {Number(symbol)});
  *size = reply.value[1];
  return note(reply.error);
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t count, size_t offset,
                               cudaMemcpyKind kind) {
  Reply reply = ask("cudaGetSymbolAddress", HERE, {Number(symbol), Number(offset), Number(count)});
  void* target = reinterpret_cast<char*>(reply.value[0]) + offset;
  return reply.error ? note(reply.error) : copy(__func__, HERE, target, count, source, count, count, 1, kind);
}
cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t count, size_t offset, cudaMemcpyKind kind) {
  Reply reply = ask("cudaGetSymbolAddress", HERE, {Number(symbol), Number(offset), Number(count)});
  void* source = reinterpret_cast<char*>(reply.value[0]) + offset;
  return reply.error ? note(reply.error) : copy(__func__, HERE, target, count, source, count, count, 1, kind);
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  Reply reply = ask(__func__, HERE, {});
  *free_bytes = reply.value[0], *total = reply.value[1];
  return note(reply.error);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  Reply reply = ask(__func__, HERE, {Number(pointer)});
  *attributes = {};
  attributes->type = cudaMemoryType(reply.value[0]);
  attributes->devicePointer = reply.value[0] ? const_cast<void*>(pointer) : nullptr;
  attributes->hostPointer = reply.value[0] == 2 ? nullptr : const_cast<void*>(pointer);
  return note(reply.error);
}
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) { return ASK(); }
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }
// The one pool of memory of the one device, whose attributes only concern time.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { return *pool = cudaMemPool_t(&device), cudaSuccess; }
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int) { return *pool = cudaMemPool_t(&device), cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

// Streams and events: all is done in order, and at once. Their handles are never followed.
static char handles[1 << 20];
static size_t made_handles;
#define NEW_HANDLE(type) reinterpret_cast<type>(&handles[++made_handles % sizeof handles])
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = NEW_HANDLE(cudaStream_t), ASK(); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t) { return ASK(); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return ASK(); }
cudaError_t cudaStreamQuery(cudaStream_t) { return ASK(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return ASK(); }
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  cudaError_t error = ASK();
  return callback(stream, error, data), error;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  const void* place = HERE;
  return now_or_captured([=] {
    cudaError_t error = note(ask("synchronize", place, {}).error);
    if (!error) function(data);
    return error;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = NEW_HANDLE(cudaEvent_t), ASK(); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return ASK(); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return ASK(); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return ASK(); }
cudaError_t cudaEventQuery(cudaEvent_t) { return ASK(); }
// No time of a GPU is known here, and the simulator's own would be taken for one: not a number. The report estimates.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = std::nanf("");
  return ASK();
}

// Graphs of what was captured, whatever the stream.
cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  if (captured) return note(cudaErrorIllegalState);
  return captured = new Graph, cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  if (!captured) return note(cudaErrorIllegalState);
  *graph = reinterpret_cast<cudaGraph_t>(captured);
  return captured = nullptr, cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  return *made = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<Graph*>(graph))), cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  cudaError_t error = cudaSuccess;
  for (auto& work : *reinterpret_cast<Graph*>(graph))
    if (!error) error = work();
  return error;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete reinterpret_cast<Graph*>(graph), cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return delete reinterpret_cast<Graph*>(graph), cudaSuccess; }

// Devices: there is one.
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* number) { return *number = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int number) { return number ? ASK(number) : cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return ASK(); }
cudaError_t cudaDeviceReset() { return ASK(); }
cudaError_t cudaInitDevice(int number, unsigned, unsigned) { return cudaSetDevice(number); }
cudaError_t cudaChooseDevice(int* number, const cudaDeviceProp13*) { return *number = 0, cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return ASK(); }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return ASK(); }
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return *config = cudaSharedMemBankSizeFourByte, cudaSuccess;
}
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return note(cudaErrorInvalidDevice); }
cudaError_t cudaDeviceDisablePeerAccess(int) { return note(cudaErrorPeerAccessNotEnabled); }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int number) {
  Reply reply = ask(__func__, HERE, {attribute, number});
  *value = int(reply.value[0]);
  return note(reply.error);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp13* found, int number) {
  *found = {};
  std::string name;
  Reply reply = ask(__func__, HERE, {number}, &name);
  if (reply.error) return note(reply.error);
  strncpy(found->name, name.c_str(), sizeof found->name - 1);
  auto get = [](int attribute) { return int(ask("cudaDeviceGetAttribute", nullptr, {attribute, 0}).value[0]); };
  found->totalGlobalMem = reply.value[0];
  found->sharedMemPerBlock = get(cudaDevAttrMaxSharedMemoryPerBlock);
  found->sharedMemPerBlockOptin = get(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  found->sharedMemPerMultiprocessor = get(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  found->reservedSharedMemPerBlock = get(cudaDevAttrReservedSharedMemoryPerBlock);
  found->regsPerBlock = get(cudaDevAttrMaxRegistersPerBlock);
  found->regsPerMultiprocessor = get(cudaDevAttrMaxRegistersPerMultiprocessor);
  found->warpSize = get(cudaDevAttrWarpSize);
  found->maxThreadsPerBlock = get(cudaDevAttrMaxThreadsPerBlock);
  found->maxThreadsPerMultiProcessor = get(cudaDevAttrMaxThreadsPerMultiProcessor);
  found->maxBlocksPerMultiProcessor = get(cudaDevAttrMaxBlocksPerMultiprocessor);
  for (int axis = 0; axis < 3; axis++) {
    found->maxThreadsDim[axis] = get(cudaDevAttrMaxBlockDimX + axis);
    found->maxGridSize[axis] = get(cudaDevAttrMaxGridDimX + axis);
  }
  found->totalConstMem = get(cudaDevAttrTotalConstantMemory);
  found->major = get(cudaDevAttrComputeCapabilityMajor);
  found->minor = get(cudaDevAttrComputeCapabilityMinor);
  found->multiProcessorCount = get(cudaDevAttrMultiProcessorCount);
  found->memoryBusWidth = get(cudaDevAttrGlobalMemoryBusWidth);
  found->l2CacheSize = get(cudaDevAttrL2CacheSize);
  found->canMapHostMemory = found->unifiedAddressing = found->managedMemory = 1;
  found->concurrentKernels = found->cooperativeLaunch = found->asyncEngineCount = 1;
  return cudaSuccess;
}
extern "C++" cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int number) {
  *found = {};
  cudaDeviceProp13* same = found;
  if (cudaError_t error = cudaGetDeviceProperties(same, number)) return error;
  Reply reply = ask(__func__, HERE, {number});
  found->deviceOverlap = 1;
  found->clockRate = int(reply.value[1]), found->memoryClockRate = int(reply.value[2]);
  return cudaSuccess;
}

// Errors
cudaError_t cudaGetLastError() {
  cudaError_t error = last_error;
  last_error = cudaError_t(ask(__func__, HERE, {error}).value[0]);  // one that stays, if a kernel has failed
  return error;
}
cudaError_t cudaPeekAtLastError() { return ask("cudaGetLastError", HERE, {last_error}), last_error; }
const char* cudaGetErrorName(cudaError_t error) {
  static std::map<int, std::string> known;
  if (!known.count(error)) ask(__func__, HERE, {error}, &known[error]);
  return known[error].c_str();
}
const char* cudaGetErrorString(cudaError_t error) {
  static std::map<int, std::string> known;
  if (!known.count(error)) ask(__func__, HERE, {error}, &known[error]);
  return known[error].c_str();
}

// Kernels
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return ASK(); }
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  return ASK(Number(kernel), attribute, value);
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* found, const void* kernel) {
  *found = {};
  Reply reply = ask(__func__, HERE, {Number(kernel)});
  found->numRegs = int(reply.value[0]), found->sharedSizeBytes = reply.value[1];
  found->maxThreadsPerBlock = int(reply.value[2]), found->localSizeBytes = reply.value[3];
  found->ptxVersion = found->binaryVersion = 90;
  return note(reply.error);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int threads,
                                                                   size_t bytes, unsigned) {
  Reply reply = ask("occupancy", HERE, {Number(kernel), threads, Number(bytes)});
  *blocks = int(reply.value[0]);
  return note(reply.error);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, size_t bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, bytes, 0);
}

// The one function of the driver that programs for Hopper ask for.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, unsigned rank, void* address,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  std::vector<Number> axes;
  for (unsigned axis = 0; axis < rank && axis < 5; axis++)
    for (Number one : {Number(sizes[axis]), Number(axis + 1 < rank ? strides[axis] : 0), Number(box[axis]), Number(steps[axis])})
      axes.push_back(one);
  std::string bytes, more(reinterpret_cast<char*>(axes.data()), axes.size() * sizeof(Number));
  Reply reply = ask(__func__, HERE, {type, rank, Number(address), interleave, swizzle, promotion, fill}, &bytes, more);
  if (reply.error) return CUDA_ERROR_INVALID_VALUE;
  memcpy(map, bytes.data(), sizeof *map);
  return CUDA_SUCCESS;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  bool known = !strcmp(name, "cuTensorMapEncodeTiled");
  *function = known ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
  if (result) *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(name, function, 0, flags, result);
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  return *text = error ? "invalid argument" : "no error", CUDA_SUCCESS;
}

}  // extern "C"
#endif
