/*
 * Debug information that no compiler writes here, for test_classify.c: variables named
 * odd_..., whose types are unusual or damaged, and parameters with locations.
 */
#define ARRAY		0x01
#define ENUMERATION	0x04
#define PARAMETER	0x05
#define MEMBER		0x0d
#define POINTER		0x0f
#define UNIT		0x11
#define STRUCTURE	0x13
#define TYPEDEF		0x16
#define INHERITANCE	0x1c
#define TO_MEMBER	0x1f
#define SUBRANGE	0x21
#define BASE		0x24
#define FUNCTION	0x2e
#define VARIABLE	0x34
#define UNSPECIFIED	0x3b

#define LOCATION	0x02, 0x18
#define LOCATIONS	0x02, 0x17
#define NAME		0x03, 0x08
#define SIZE		0x0b, 0x0b
#define BIT_SIZE	0x0d, 0x0b
#define PRODUCER	0x25, 0x08
#define CONVENTION	0x36, 0x0b
#define COUNT		0x37, 0x07
#define AT		0x38, 0x0b
#define PLACE		0x38, 0x18
#define DECLARATION	0x3c, 0x19
#define ENCODING	0x3e, 0x0b
#define EXTERNAL	0x3f, 0x19
#define TYPE		0x49, 0x13
#define BITS_BEFORE	0x6b, 0x0b

	.section .note.GNU-stack,"",@progbits
	.section .debug_abbrev,"",@progbits
abbreviations:
.macro ABBREVIATION number, tag, children, attributes:vararg
	.uleb128 \number, \tag
	.byte \children
	.uleb128 \attributes
	.byte 0, 0
.endm
	ABBREVIATION 1, UNIT, 1, PRODUCER
	ABBREVIATION 2, VARIABLE, 0, NAME, TYPE
	ABBREVIATION 3, POINTER, 0, TYPE
	ABBREVIATION 4, BASE, 0, NAME, ENCODING, SIZE
	ABBREVIATION 5, BASE, 0, ENCODING, SIZE
	ABBREVIATION 6, BASE, 0, NAME, ENCODING
	ABBREVIATION 7, BASE, 0, NAME, SIZE
	ABBREVIATION 8, STRUCTURE, 1, SIZE
	ABBREVIATION 9, MEMBER, 0, TYPE, AT
	ABBREVIATION 10, MEMBER, 0, TYPE, BIT_SIZE, BITS_BEFORE
	ABBREVIATION 11, STRUCTURE, 0, DECLARATION
	ABBREVIATION 12, TYPEDEF, 0, NAME
	ABBREVIATION 13, TYPEDEF, 0, TYPE
	ABBREVIATION 14, ARRAY, 1, TYPE
	ABBREVIATION 15, SUBRANGE, 0, COUNT
	ABBREVIATION 16, ARRAY, 0, TYPE
	ABBREVIATION 17, UNSPECIFIED, 0, NAME
	ABBREVIATION 18, TO_MEMBER, 0, NAME
	ABBREVIATION 19, ENUMERATION, 0, NAME
	ABBREVIATION 20, INHERITANCE, 0, TYPE, PLACE
	ABBREVIATION 21, PARAMETER, 0, NAME, TYPE, LOCATION
	ABBREVIATION 22, PARAMETER, 0, NAME, TYPE, LOCATIONS
	ABBREVIATION 23, MEMBER, 0, AT
	ABBREVIATION 24, STRUCTURE, 0, NAME
	ABBREVIATION 25, STRUCTURE, 0, CONVENTION, SIZE
	ABBREVIATION 26, ARRAY, 1, NAME
	ABBREVIATION 27, PARAMETER, 0, NAME, TYPE
	ABBREVIATION 28, STRUCTURE, 1, CONVENTION, SIZE
	ABBREVIATION 29, FUNCTION, 0, NAME
	ABBREVIATION 30, MEMBER, 0, TYPE, EXTERNAL
	ABBREVIATION 31, MEMBER, 0, TYPE, DECLARATION
	.byte 0

	.section .debug_loc,"",@progbits
locations:
.macro PLACES at, bytes:vararg
	.quad \at, \at + 1
	.short 9f - 8f
8:	.byte \bytes
9:
.endm
by_address:
	PLACES 1, 0x91, 0, 0x06
	PLACES 2, 0x75, 0
	.quad 0, 0
by_address_first:
	PLACES 1, 0x91, 0, 0x06
	PLACES 2, 0x55
	.quad 0, 0
in_registers:
	PLACES 1, 0x55
	PLACES 2, 0x91, 0, 0x06
	.quad 0, 0
nowhere_then:
	PLACES 1, 0x91, 0, 0x06
	.quad 2, 3
	.short 0
	.quad 0, 0
nowhere:
	.quad 0, 0

	.section .debug_info,"",@progbits
.macro BEGIN_UNIT producer
7:	.long 6f - 7b - 4
	.short 4
	.long abbreviations
	.byte 8
	.uleb128 1
	.asciz "\producer"
.endm
.macro END_UNIT
	.byte 0
6:
.endm
/* A variable; its type's type is the DIE that follows. */
.macro ODD name, abbreviation, bytes:vararg
	.uleb128 2
	.asciz "odd_\name"
	.long 1f - 7b
1:	.uleb128 3
	.long 2f - 7b
2:	.uleb128 \abbreviation
.endm
.macro BASE_OF name, encoding, size
	.asciz "\name"
	.byte \encoding, \size
.endm
.macro MEMBER_OF type, at
	.uleb128 9
	.long \type - 7b
	.byte \at
.endm
.macro BITS_OF type, bits, before
	.uleb128 10
	.long \type - 7b
	.byte \bits, \before
.endm
.macro ELEMENTS counts:vararg
	.irp count, \counts
	.uleb128 15
	.quad \count
	.endr
	.byte 0
.endm
.macro AT_LOCATION name, bytes:vararg
	.uleb128 21
	.asciz "odd_\name"
	.long incomplete - 7b
	.uleb128 9f - 8f
8:	.byte \bytes
9:
.endm
.macro AT_LOCATIONS name, list
	.uleb128 22
	.asciz "odd_\name"
	.long incomplete - 7b
	.long \list
.endm

	BEGIN_UNIT "GNU C17"
int_4:	.uleb128 4
	BASE_OF "int", 5, 4
int_8:	.uleb128 4
	BASE_OF "long", 5, 8
int_9:	.uleb128 4
	BASE_OF "nine", 5, 9
double_8: .uleb128 4
	BASE_OF "double", 4, 8
incomplete:
	.uleb128 11
	ODD float_2, 4
	BASE_OF "_Float16", 4, 2
	ODD float_12, 4
	BASE_OF "long double", 4, 12
	ODD float_16, 4
	BASE_OF "__float128", 4, 16
	ODD complex_17, 4
	BASE_OF "complex double", 3, 17
	ODD complex_24, 4
	BASE_OF "complex long double", 3, 24
	ODD complex_16, 4
	BASE_OF "complex double", 3, 16
	ODD address, 4
	BASE_OF "address", 1, 8
	ODD utf, 4
	BASE_OF "char32_t", 0x10, 4
	ODD integer_9, 4
	BASE_OF "nine", 7, 9
	ODD integer_16, 4
	BASE_OF "sixteen", 7, 16
	ODD integer_32, 4
	BASE_OF "__int128 twice", 7, 32
	ODD decimal, 4
	BASE_OF "_Decimal64", 0xf, 8
	ODD no_name, 5
	.byte 5, 4
	ODD no_size, 6
	.asciz "int"
	.byte 5
	ODD no_encoding, 7
	.asciz "int"
	.byte 4
	ODD unspecified, 17
	.asciz "nullptr_t"
	ODD member_of_nothing, 18
	.asciz "none"
	ODD enumeration, 19
	.asciz "none"
	ODD typedef_of_nothing, 12
	.asciz "none"
	ODD typedef_of_itself, 13
	.long 2b - 7b
	ODD array_of_nothing, 26
	.asciz "none"
	ELEMENTS 2
	ODD array_without_size, 16
	.long int_4 - 7b
	ODD array_too_large, 14
	.long int_4 - 7b
	ELEMENTS 0x100000000
	ODD arrays_too_large, 14
	.long int_4 - 7b
	ELEMENTS 0x10000, 0x10000, 2
	ODD arrays, 14
	.long int_4 - 7b
	ELEMENTS 3, 1, 2
	ODD structure, 8
	.byte 16
	MEMBER_OF int_8, 0
	MEMBER_OF double_8, 8
	.byte 0
	ODD structure_without_size, 24
	.asciz "none"
	ODD itself, 8
	.byte 4
	MEMBER_OF 2b, 0
	.byte 0
	ODD member_of_no_type, 8
	.byte 8
	.uleb128 23
	.byte 0
	.byte 0
	ODD base_somewhere, 8
	.byte 16
	.uleb128 20
	.long int_8 - 7b
	.byte 1, 0x30
	.byte 0
	ODD by_reference, 25
	.byte 4, 8
	ODD by_value, 25
	.byte 5, 8
	ODD normal, 25
	.byte 1, 8
	ODD by_value_with_destructor, 28
	.byte 5, 8
	.uleb128 29
	.asciz "~x"
	MEMBER_OF int_8, 0
	.byte 0
	ODD normal_with_destructor, 28
	.byte 1, 8
	.uleb128 29
	.asciz "~x"
	MEMBER_OF int_8, 0
	.byte 0
	ODD static_members, 8
	.byte 4
	MEMBER_OF int_4, 0
	.uleb128 30
	.long double_8 - 7b
	.uleb128 31
	.long double_8 - 7b
	.byte 0
unknown_bits:
	.uleb128 8
	.byte 8
	BITS_OF int_8, 0, 0
	.byte 0
	ODD unknown_bits_behind, 8
	.byte 24
	MEMBER_OF unknown_bits, 16
	.byte 0
	ODD unknown_bits_far_behind, 8
	.byte 32
	MEMBER_OF unknown_bits, 24
	.byte 0
	ODD defined_elsewhere, 11
	ODD no_bits, 8
	.byte 8
	BITS_OF int_8, 0, 0
	.byte 0
	ODD all_bits, 8
	.byte 8
	BITS_OF int_8, 64, 0
	.byte 0
	ODD too_many_bits, 8
	.byte 16
	BITS_OF int_8, 65, 0
	.byte 0
	ODD bits_of_nine, 8
	.byte 16
	BITS_OF int_9, 3, 0
	.byte 0
	ODD bits_of_second, 8
	.byte 16
	BITS_OF int_8, 3, 70
	.byte 0
bits_inside:
	.uleb128 8
	.byte 8
	BITS_OF int_8, 9, 1
	.byte 0
	ODD bits_behind, 8
	.byte 16
	MEMBER_OF double_8, 0
	MEMBER_OF bits_inside, 8
	.byte 0
	ODD bits_far_behind, 8
	.byte 32
	MEMBER_OF bits_inside, 24
	.byte 0
	ODD overlapping, 8
	.byte 8
	MEMBER_OF int_4, 2
	.byte 0
	AT_LOCATION frame, 0x91, 0
	AT_LOCATION pointer_in_frame, 0x91, 8, 0x06
	AT_LOCATION pointer_at_rbp, 0x76, 8, 0x06
	AT_LOCATION pointer_at_rsp, 0x77, 8, 0x06
	AT_LOCATION pointer_at_rdi, 0x75, 8, 0x06
	AT_LOCATION at_rdi, 0x75, 0
	AT_LOCATION at_rax, 0x70, 0
	AT_LOCATION at_r31, 0x8f, 0
	AT_LOCATION at_rsp, 0x77, 0
	AT_LOCATION at_rbp, 0x76, 0
	AT_LOCATION behind_rdi, 0x75, 8
	AT_LOCATION in_rdi, 0x55
	AT_LOCATION another_operation, 0x75, 0, 0x22
	AT_LOCATIONS at_addresses, by_address
	AT_LOCATIONS at_an_address_first, by_address_first
	AT_LOCATIONS in_a_register_first, in_registers
	AT_LOCATIONS nowhere_then, nowhere_then
	AT_LOCATIONS nowhere, nowhere
	.uleb128 27
	.asciz "odd_without_location"
	.long incomplete - 7b
	.uleb128 21
	.asciz "odd_number"
	.long int_9 - 7b
	.byte 2, 0x75, 0
	END_UNIT

.macro INT_128 name, producer
	BEGIN_UNIT "\producer"
	.uleb128 27
	.asciz "odd_\name"
	.long 3f - 7b
3:	.uleb128 4
	BASE_OF "unsigned __int128", 7, 16
	END_UNIT
.endm
	INT_128 int_128_of_gcc, "GNU C++17 12.2"
	INT_128 int_128_of_clang, "Debian clang version 14.0.6"
	INT_128 int_128_of_clang_1, "clang version 1.0"
	INT_128 int_128_of_clang_17, "clang version 17.0.6"
	INT_128 int_128_of_clang_18, "clang version 18.1.3"
	INT_128 int_128_of_clang_0, "clang version trunk"
	INT_128 int_128_of_others, "others"
