/* The one function of bcryptprimitives.dll that Rust's standard library imports: wine 8 has no such
 * library, and no program would start. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T count)
{
    return RtlGenRandom(bytes, (ULONG)count);
}
